"""An MCP server, ``shardcore mcp``: agents and editors ask about programs that they keep open.

===================  =========================================================================
:mod:`~.toolbox`     what a tool is: a function whose parameters are its arguments
:mod:`~.programs`    the programs that are open, and answers
:mod:`~.reading`     tools that read: ``open``, ``shardings``, ``why``, ``why_not``
:mod:`~.costing`     tools that count: ``cost``, ``edit``, ``evaluate``, ``plan``, ``diff``
:mod:`~.failures`    the text of a tool's error
:mod:`~.worker`      does the work in the main thread, where it can be interrupted
:mod:`~.server`      the server, over standard input and output
===================  =========================================================================

A new tool is a function with ``@tool`` in a module that :mod:`~.server` imports. ``mcp`` and its
dependencies are imported here and nowhere else.
"""
