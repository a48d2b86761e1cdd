"""The command line: one small file a command. Heavy imports stay inside the commands, so that help is quick."""
