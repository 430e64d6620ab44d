"""What the commands of ``keima`` are made of, so that their helps have one style; needs click alone."""

import click


class KeimaCommand(click.Command):
    """A command of ``keima``; all that its help says has one style."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """See :meth:`click.Command.get_help_option`."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "show this message, and end"
        return option


class KeimaGroup(KeimaCommand, click.Group):
    """A command that has others."""

    command_class = KeimaCommand
