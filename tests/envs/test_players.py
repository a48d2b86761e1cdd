"""Who plays: at random, greedily, looking ahead, and by policies in memory and in folders."""

import json
import pickle
from collections import Counter
from types import SimpleNamespace

import pytest
import torch

from rlbench.actions import pack, unpack
from rlbench.envs import alpha_beta as searching
from rlbench.envs.alpha_beta import alpha_beta, first_of_largest, native_search
from rlbench.envs.othello import boards_of, legal_actions
from rlbench.envs.othello_one import OneOthello, alpha_beta_id, legal_ids, play, start_of
from rlbench.envs.players import (
    NAMES,
    PlayerError,
    greedy,
    opponent_named,
    player_of,
    policy_player,
    random_player,
    saved_player,
)
from rlbench.models.action_scorer import ActionScorer
from rlbench.random import Purpose, random_bits, to_below

OBS = torch.zeros(3, 4)


def positions(size, games, every=1):
    """(mine, theirs) of games played at random, those in which a pass is left among them."""
    found = []
    for index in range(games):
        game = OneOthello(SimpleNamespace(size=size, reward="win", opening_plies=0, opponent=None))
        game.reset(0, 0, index)
        ply, over = 0, False
        while not over:
            if (ply + index) % every == 0:
                found.append((game.mine, game.theirs))
            _, over = game.step(game.ids[to_below(random_bits(1, Purpose.ACTION, ply, index), len(game.ids))])
            ply += 1
    return found


def as_tensors(boards, size):
    """Features and legal sets by Python ints."""
    squares = [1 << (8 * r + c) for r in range(size) for c in range(size)]
    obs = [[float(bool(discs & square)) for discs in pair for square in squares] for pair in boards]
    return torch.tensor(obs), pack([legal_ids(*pair, size) for pair in boards])


def test_random_player_takes_the_draws_of_its_calls():
    legal = pack([[5], [1, 2, 2**63], [7, 8]])
    player, again = random_player(3), random_player(3)
    for call in range(5):
        want = [
            ids[to_below(random_bits(3, Purpose.OPPONENT, call, i), len(ids))] for i, ids in enumerate(unpack(legal))
        ]
        assert player(OBS, legal).tolist() == [id - 2**64 if id >> 63 else id for id in want]
        assert torch.equal(again(OBS, legal), again.__class__(3, call)(OBS, legal))


def test_random_player_takes_all_alike():
    legal = pack([[1, 2, 3]] * 3000)
    seen = Counter(random_player(1)(torch.zeros(3000, 1), legal).tolist())
    assert all(900 < seen[i] < 1100 for i in (1, 2, 3))


def test_greedy_takes_the_first_of_the_ids_with_most_bits():
    legal = pack([[0], [1, 6, 2**63 + 1, 8], [2**64 - 1, 3]])
    assert greedy(OBS, legal).tolist() == [0, 6, -1]


def test_first_of_largest():
    legal = pack([[9, 8], [7], [6, 5, 4]])
    assert first_of_largest(torch.tensor([1, 1, -5, 2, 3, 3]), legal).tolist() == [9, 7, 5]
    assert first_of_largest(torch.tensor([0.0, 0.5, -torch.inf, 2, 1, 2]), legal).tolist() == [8, 7, 6]


def minimax(mine, theirs, size, depth):
    ids = legal_ids(mine, theirs, size)
    if depth == 0 or not ids:
        return mine.bit_count() - theirs.bit_count()
    return max(-minimax(*play(mine, theirs, action), size, depth - 1) for action in ids)


def first_best(mine, theirs, size, depth):
    ids = legal_ids(mine, theirs, size)
    values = [-minimax(*play(mine, theirs, action), size, depth - 1) for action in ids]
    return ids[values.index(max(values))]


@pytest.fixture(params=["native", "tensors"])
def search_by(request, monkeypatch):
    if request.param == "tensors":
        monkeypatch.setattr(searching, "native_search", lambda: None)
        monkeypatch.setattr(searching, "CHUNK", 37)  # several chunks a level
    elif native_search() is None:
        pytest.skip("no C compiler")


@pytest.mark.parametrize(
    ("size", "depth", "games", "every"),
    [(4, 1, 8, 1), (4, 4, 8, 1), (6, 2, 3, 1), (6, 3, 4, 5), (8, 1, 3, 1), (8, 2, 3, 5), (8, 3, 3, 20)],
)
@pytest.mark.usefixtures("search_by")
def test_alpha_beta_is_naive_minimax(size, depth, games, every):
    boards = positions(size, games, every)
    obs, legal = as_tensors(boards, size)
    want = pack([[first_best(*pair, size, depth)] for pair in boards]).ids
    assert torch.equal(alpha_beta(depth, size)(obs, legal), want)


@pytest.mark.parametrize(("size", "games", "every"), [(6, 6, 3), (8, 3, 5)])
@pytest.mark.usefixtures("search_by")
def test_alpha_beta_of_depth_4_is_that_in_python(size, games, every):
    boards = positions(size, games, every)
    obs, legal = as_tensors(boards, size)
    want = pack([[alpha_beta_id(*pair, legal_ids(*pair, size), size, 4)] for pair in boards]).ids
    assert torch.equal(alpha_beta(4, size)(obs, legal), want)


@pytest.mark.usefixtures("search_by")
def test_alpha_beta_takes_the_first_in_the_order_that_it_is_given():
    obs, legal = as_tensors([start_of(8)], 8)  # all four moves are alike at depth 1
    other = pack([unpack(legal)[0][::-1]])
    assert alpha_beta(1)(obs, other).tolist() == [legal.ids[-1].item()]


@pytest.mark.parametrize("size", [4, 6, 8])
def test_boards_of_features(size):
    boards = positions(size, 2)
    obs, legal = as_tensors(boards, size)
    found = boards_of(obs, size)
    masks = [[value & (2**64 - 1) for value in side.tolist()] for side in found[:2]]
    assert list(zip(*masks, strict=True)) == boards
    assert torch.equal(legal_actions(found).ids, legal.ids)


@pytest.mark.parametrize(("depth", "size", "message"), [(0, 8, "depth=0"), (5, 8, "depth=5"), (1, 5, "size=5")])
def test_alpha_beta_refusals(depth, size, message):
    with pytest.raises(ValueError, match=f"{message} is refused; accepted"):
        alpha_beta(depth, size)
    with pytest.raises(ValueError, match=r"features \(3, 4\) are refused"):
        alpha_beta(1)(OBS, pack([[0]] * 3))


def scorer(obs_size=4, hidden=(8, 6), seed=0):
    return ActionScorer(obs_size, hidden, torch.Generator().manual_seed(seed))


def test_a_policy_takes_its_best_action():
    model, obs = scorer(), torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    legal = pack([[5], [1, 2, 2**63], [7, 8, 9, 10]])
    want = []
    for row, ids in zip(obs, unpack(legal), strict=True):
        joint, _ = model.states(row[None])
        scores = [model.scores(joint, pack([[action]]).ids).item() for action in ids]
        want.append(ids[scores.index(max(scores))])
    assert unpack(pack([[action] for action in want])) == [
        [value & (2**64 - 1)] for value in player_of(model)(obs, legal).tolist()
    ]


def test_a_sampled_policy_draws_from_its_softmax_and_repeats():
    model = scorer()
    legal, obs = pack([[3, 2**40 + 1, 2**63]] * 4000), torch.zeros(4000, 4)
    drawn = player_of(model, sample=5)(obs, legal)
    assert torch.equal(drawn, player_of(model, sample=5)(obs, legal))
    assert not torch.equal(drawn, player_of(model, sample=6)(obs, legal))
    joint, _ = model.states(obs[:1])
    p = model.scores(joint, legal.ids[:3]).softmax(0)
    shares = torch.stack([(drawn == action).float().mean() for action in legal.ids[:3]])
    assert (shares - p).abs().max() < 4 * 0.5 / 4000**0.5


def test_a_policy_with_a_nan_is_refused():
    obs = torch.zeros(2, 4)
    obs[1, 0] = torch.nan
    with pytest.raises(PlayerError, match="scores of state 1 are not finite"):
        player_of(scorer())(obs, pack([[1], [2]]))


def test_policies_in_other_forms():
    model, legal = scorer(), pack([[1, 2, 3, 4, 5, 6]])
    obs = torch.ones(1, 4)
    want = player_of(model)(obs, legal)
    run = SimpleNamespace(weights=model.state_dict(), config={"hidden": [8, 6]})
    for policy in (model, SimpleNamespace(model=model), run):
        assert torch.equal(policy_player(policy)(obs, legal), want)
    assert torch.equal(pickle.loads(pickle.dumps(player_of(model)))(obs, legal), want)
    with pytest.raises(PlayerError, match="Linear is no policy over sets of actions"):
        policy_player(torch.nn.Linear(1, 1))


def save(folder, model, **config):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"hidden": [8, 6], **config}))
    torch.save(model.state_dict(), folder / "weights.pt")


def test_saved_policy(tmp_path):
    model = scorer(32)
    save(tmp_path, model)
    obs, legal = as_tensors(positions(4, 2), 4)
    want = player_of(model)(obs, legal)
    assert torch.equal(saved_player(tmp_path)(obs, legal), want)
    assert torch.equal(opponent_named(tmp_path, 1, 4)(obs, legal), want)
    with pytest.raises(PlayerError, match=r"weights.pt is a policy for 32 features; a 8x8 board has 128"):
        opponent_named(str(tmp_path), 1, 8)


def test_folders_that_hold_no_policy(tmp_path):
    with pytest.raises(PlayerError, match=r"there is no file .*config.json; accepted is a folder"):
        saved_player(tmp_path)
    save(tmp_path, scorer())
    for content in ("[", "{}", "[]"):
        (tmp_path / "config.json").write_text(content)
        with pytest.raises(PlayerError, match=r"config.json has no setting 'hidden'"):
            saved_player(tmp_path)
    save(tmp_path, scorer(), hidden=[8, 7])
    with pytest.raises(PlayerError, match=r"weights.pt does not fit a policy with hidden=\(8, 7\)"):
        saved_player(tmp_path)
    save(tmp_path, scorer(), hidden="wide")
    with pytest.raises(PlayerError, match="hidden='wide' is refused"):
        saved_player(tmp_path)
    save(tmp_path, torch.nn.Linear(2, 2))
    with pytest.raises(PlayerError, match=r"weights.pt holds no policy over sets of actions"):
        saved_player(tmp_path)
    for content in (b"", b"not weights", (b"PK\x03\x04" + bytes(40))):
        (tmp_path / "weights.pt").write_bytes(content)
        with pytest.raises(PlayerError, match=r"weights.pt is damaged"):
            saved_player(tmp_path)
    torch.save({"state.0.weight": SimpleNamespace()}, tmp_path / "weights.pt")
    with pytest.raises(PlayerError, match=r"weights.pt is damaged"):
        saved_player(tmp_path)


def test_opponents_by_name():
    obs, legal = as_tensors(positions(4, 1), 4)
    for name in NAMES:
        chosen = opponent_named(name, 1, 4)(obs, legal)
        assert all(value & (2**64 - 1) in ids for value, ids in zip(chosen.tolist(), unpack(legal), strict=True))
    with pytest.raises(PlayerError, match="opponent 'alpha_beta_5' is refused; accepted: random, greedy, alpha_beta_1"):
        opponent_named("alpha_beta_5", 1)
