import json

import pytest
import torch

from rlbench import machine
from rlbench.machine import REMEDIES, Probe, StealMeter, describe, resolve_device

H200 = ("NVIDIA H200",)


def planted(tmp_path, files=None, **sources):
    """A probe of a made-up machine: four cores, quiet, no GPU, no /proc or /sys but for the given files."""
    for name, text in (files or {}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    defaults = {
        "torch_cuda": lambda: None,
        "cuda_available": lambda: False,
        "gpus": lambda: (),
        "mps": lambda: False,
        "torch_threads": lambda: 1,
        "which": lambda name: None,
        "cpu_count": lambda: 4,
        "affinity": lambda: None,
        "load": lambda: None,
        "sleep": lambda seconds: None,
    }
    return Probe(root=tmp_path, **{**defaults, **sources})


def pci(vendor, kind="0x030200", slot="0000:01:00.0"):
    folder = f"sys/bus/pci/devices/{slot}"
    return {f"{folder}/vendor": vendor + "\n", f"{folder}/class": kind + "\n"}


def cuda(tmp_path, gpus=H200):
    return planted(tmp_path, torch_cuda=lambda: "12.8", cuda_available=lambda: True, gpus=lambda: gpus)


def test_no_gpu_whatever_the_torch_build(tmp_path):
    assert planted(tmp_path).cuda_status() == "no_gpu"
    assert planted(tmp_path, torch_cuda=lambda: "12.8").cuda_status() == "no_gpu"


@pytest.mark.parametrize("vendor, kind", [("0x1002", "0x030000"), ("0x10de", "0x020700"), ("0x10de", "0x068000")])
def test_other_cards_and_nvidias_network_cards_and_bridges_are_no_gpu(tmp_path, vendor, kind):
    assert planted(tmp_path, pci(vendor, kind)).cuda_status() == "no_gpu"


@pytest.mark.parametrize("kind", ["0x030000", "0x030200"])
def test_hardware_without_a_driver(tmp_path, kind):
    files = pci("0x8086", "0x060000", "0000:00:00.0") | pci("0x10de", kind)
    found = describe(planted(tmp_path, files, torch_cuda=lambda: "12.8"))
    assert found.cuda == "no_driver" and "driver" in found.remedy
    assert found.remedy in found.card()


@pytest.mark.parametrize("sign", ["pci", "proc", "dev", "tool"])
def test_a_cpu_only_torch_where_there_is_a_gpu(tmp_path, sign):
    files = {"pci": pci("0x10de"), "proc": {"proc/driver/nvidia/version": "x"}, "dev": {"dev/nvidiactl": ""}}
    which = (lambda name: "/usr/bin/" + name) if sign == "tool" else (lambda name: None)
    found = describe(planted(tmp_path, files.get(sign), which=which))
    assert found.cuda == "cpu_only_torch" and "install the CUDA build" in found.remedy
    assert not found.has_cuda and found.gpus == ()


def test_cuda(tmp_path):
    found = describe(cuda(tmp_path))
    assert found.has_cuda and found.gpus == H200
    assert "NVIDIA H200" in found.card()


def test_every_status_has_a_remedy_of_one_sentence():
    assert set(REMEDIES) == {"cuda", "no_gpu", "no_driver", "cpu_only_torch"}
    assert all(text.endswith(".") and ". " not in text for text in REMEDIES.values())


def test_a_system_without_proc_and_sys_has_empty_fields(tmp_path):
    found = describe(planted(tmp_path, cpu_count=lambda: None))
    assert (found.memory_gb, found.on_battery, found.load, found.steal) == (None, None, None, None)
    assert (found.cores, found.usable_cores) == (1, 1)
    assert found.cpu and found.warnings() == []


def test_mps_is_said_to_be_unused(tmp_path):
    assert "not used" in describe(planted(tmp_path, mps=lambda: True)).card()
    assert "MPS" not in describe(planted(tmp_path)).card()


@pytest.mark.parametrize(
    "files, expected",
    [
        ({}, None),
        ({"AC/type": "Mains", "AC/online": "1"}, None),
        ({"BAT0/type": "Battery", "BAT0/status": "Charging"}, False),
        ({"BAT0/type": "Battery", "BAT0/status": "Full", "BAT1/type": "Battery", "BAT1/status": "Discharging"}, True),
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/status": "Discharging"}, None),
    ],
)
def test_battery(tmp_path, files, expected):
    found = describe(planted(tmp_path, {f"sys/class/power_supply/{k}": v for k, v in files.items()}))
    assert found.on_battery is expected
    assert any("battery" in text for text in found.warnings()) is (expected is True)


def test_load_is_a_core(tmp_path):
    busy, quiet = (describe(planted(tmp_path, load=lambda load=load: load)) for load in (3.0, 1.0))
    assert (busy.load, quiet.load) == (0.75, 0.25)
    assert "0.75 a core" in busy.warnings()[0] and quiet.warnings() == []


def stat(user, steal):
    return f"cpu  {user} 0 100 1000 50 0 0 {steal} 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"


def test_steal_is_the_share_since_the_meter_began(tmp_path):
    probe = planted(tmp_path, {"proc/stat": stat(400, 300)})
    meter = StealMeter(probe)
    assert meter.percent() == 0.0
    (tmp_path / "proc/stat").write_text(stat(475, 325))  # 100 ticks went by, 25 of them stolen
    assert meter.percent() == 25.0


def test_describe_samples_steal_over_the_interval(tmp_path):
    def sleep(seconds):
        assert seconds == 0.3
        (tmp_path / "proc/stat").write_text(stat(490, 310))

    probe = planted(tmp_path, {"proc/stat": stat(400, 300)}, sleep=sleep)
    found = describe(probe, steal_interval_s=0.3)
    assert found.steal == 10.0 and "10.0 %" in found.warnings()[0]


@pytest.mark.parametrize("text", ["", "cpu  1 2 3\n", "intr 1 2 3 4 5 6 7 8 9\n"])
def test_steal_is_unknown_without_the_counters(tmp_path, text):
    assert StealMeter(planted(tmp_path, {"proc/stat": text})).percent() is None


@pytest.mark.parametrize(
    "files, affinity, expected",
    [
        ({}, None, 4),
        ({}, 2, 2),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, 3, 3),
        ({"sys/fs/cgroup/cpu.max": "150000 100000"}, 3, 1.5),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, None, 2),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}, None, 4),
        ({"sys/fs/cgroup/cpu.max": "9900000 100000"}, None, 4),
    ],
)
def test_usable_cores(tmp_path, files, affinity, expected):
    found = describe(planted(tmp_path, files, affinity=lambda: affinity))
    assert found.usable_cores == expected
    assert any("may be used" in text for text in found.warnings()) is (expected < 4)


def test_more_torch_threads_than_cores(tmp_path):
    half_core = planted(tmp_path / "a", {"sys/fs/cgroup/cpu.max": "50000 100000"}, torch_threads=lambda: 1)
    found = describe(half_core)
    assert not any("set_num_threads" in text for text in found.warnings()) and found.slug.endswith("-1c")
    many = describe(planted(tmp_path / "b", torch_threads=lambda: 8, affinity=lambda: 2))
    assert "torch.set_num_threads(2)" in many.warnings()[-1]
    assert "torch.set_num_threads(2)" in many.card()


@pytest.mark.parametrize(
    "cpu, gpus, slug",
    [
        ("AMD EPYC 9B14 96-Core Processor", (), "amd-epyc-4c"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", H200, "intel-xeon-4c-h200"),
        ("Apple M2 Pro", (), "apple-m2-4c"),
        ("x", ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"), "x-4c-2x-rtx-4090"),
        ("x", ("NVIDIA A100-SXM4-80GB",), "x-4c-a100"),
        ("x", ("Tesla T4",), "x-4c-t4"),
        ("x", ("Graphics Device",), "x-4c-graphics-device"),
    ],
)
def test_slug(tmp_path, cpu, gpus, slug):
    probe = cuda(tmp_path, gpus) if gpus else planted(tmp_path)
    (tmp_path / "proc").mkdir(exist_ok=True)
    (tmp_path / "proc/cpuinfo").write_text(f"processor : 0\nmodel name\t: {cpu}\nflags : a\nmodel name : other\n")
    found = describe(probe)
    assert (found.cpu, found.slug) == (cpu, slug)


def test_memory_card_and_dict(tmp_path):
    found = describe(planted(tmp_path, {"proc/meminfo": "MemTotal:       16000000 kB\nMemFree: 1 kB\n"}))
    assert found.memory_gb == 16.4  # 16,000,000 * 1024 bytes
    assert "16.4 GB" in found.card() and len(found.card().splitlines()) == 4
    as_dict = json.loads(json.dumps(found.to_dict()))
    assert as_dict["slug"] == found.slug and as_dict["cuda"] == "no_gpu" and as_dict["gpus"] == []


def test_this_machine_can_be_described():
    found = describe(steal_interval_s=0)
    assert found.usable_cores > 0 and found.has_cuda == torch.cuda.is_available()


def test_auto_and_cpu(tmp_path, capsys):
    assert resolve_device("auto", planted(tmp_path)) == torch.device("cpu")
    assert resolve_device("auto", cuda(tmp_path)) == torch.device("cuda:0")
    assert resolve_device("cpu", cuda(tmp_path)) == resolve_device(torch.device("cpu")) == torch.device("cpu")
    assert capsys.readouterr().err == ""


def test_cuda_absent_falls_back_with_one_line_a_process(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(machine, "_said", set())
    for _ in range(3):
        assert resolve_device("cuda", planted(tmp_path)) == torch.device("cpu")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "running on the CPU instead" in lines[0] and REMEDIES["no_gpu"] in lines[0]


def test_a_gpu_by_number(tmp_path):
    two = cuda(tmp_path, H200 * 2)
    assert resolve_device("cuda", two) == torch.device("cuda:0")
    assert resolve_device(torch.device("cuda", 1), two) == torch.device("cuda:1")
    with pytest.raises(ValueError, match=r"'cuda:2': this machine has 2 GPU"):
        resolve_device("cuda:2", two)


@pytest.mark.parametrize("name", ["mps", "gpu", "cuda:", "cuda:x", "CUDA", ""])
def test_unknown_devices_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match="accepted: 'auto', 'cpu', 'cuda', 'cuda:N'") as caught:
        resolve_device(name, planted(tmp_path))
    assert ("MPS is not used" in str(caught.value)) is (name == "mps")
