/* Found by the RUNPATH of the program that opens it, and by nothing else. */
int plugin_is_here;
