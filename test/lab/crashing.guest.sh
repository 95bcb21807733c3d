# A kernel that dies in the middle of a scenario. See laboratory.test.ts.
good() { fact kept 'before the crash'; }
crash() { echo c > /proc/sysrq-trigger; }

scenario good 5 good
scenario crash 5 crash
