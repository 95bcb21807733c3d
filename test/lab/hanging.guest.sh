# Scenarios that end badly, and a script that does not end. See laboratory.test.ts.
good() { fact kept 'a value, "quoted" and all'; }
hanging() { sleep 600; }
failing() { false; }

scenario good 5 good
scenario hanging 2 hanging
scenario failing 5 failing
sleep 600
