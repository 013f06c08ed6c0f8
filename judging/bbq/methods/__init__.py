"""Methods of answering BBQ, one small file each; `parley.judging.bbq.registry` lists them."""
