"""A result as one self-contained HTML page: no other files, no requests.

======================  ==========================================================================
:mod:`~.document`       :class:`Page`; puts data, style and scripts together
:mod:`~.data`           what is in the page, as plain data
:mod:`~.string_tables`  texts, shardings and places, each once
:mod:`~.folded`         values, arguments and results, with equal ones in one row
:mod:`~.whys`           where axes come from
:mod:`~.source_text`    the user's source, or the text of the program
:mod:`~.costs`          time, memory and collectives
:mod:`~.changes`        differences to another result
:mod:`~.drawing`        the computation graph, and its shardings step by step
======================  ==========================================================================

The scripts are ``*.js``, joined in the order of :data:`~.document.SCRIPTS`; they insert all text as
text, never as HTML.
"""

from __future__ import annotations

from shardcore.report.page.document import Page, show, write_page

__all__ = ["Page", "show", "write_page"]
