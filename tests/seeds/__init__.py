"""What the documents that the project started from say, one test for each row.

===  ==============================================================================
000  Shardy, "Sharding representation" (002 is the same document in another language)
001  Shardy, "Propagation"
003  "How to Scale Your Model", part 3, "Sharded matrices and how to multiply them"
004  "GSPMD, part I", of a series on language models in JAX
===  ==============================================================================

A test is named after the document and the line that it holds, ``test_000_088_...``, and the id of a
case is ``line: what``. Where a document is wrong or out of date, its test says so.
"""
