"""One file a command. Words of the command line enter; an exit code leaves."""
