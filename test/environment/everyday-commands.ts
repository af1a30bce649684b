// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is bash.
/** What agents type every day, by name. Each runs in a workspace of its own and answers alike on both tiers. */
export const everydayCommands: Readonly<Record<string, string>> = {
  'files are made, moved and listed': 'mkdir -p a/b && touch a/b/c a/d && mv a/d a/e && cp -r a f && rm -r a/b && find . -type f | sort',
  'a listing in columns of text': 'touch b a C; ls -1; ls | wc -l',
  links: 'echo x > a; ln -s a b; readlink b; cat b; [ -L b ] && echo link',
  permissions: 'touch a; chmod 640 a; stat -c %a a; [ -x a ] || echo no; chmod +x a; [ -x a ] && echo yes',
  'text is searched': 'printf "a1\\nb2\\na3\\n" > t; grep -n a t; grep -c a t; grep -v a t; grep -oE "[0-9]+" t; grep -q z t || echo none',
  'text is searched below folders': 'mkdir -p x/y; echo needle > x/y/f; echo hay > x/g; grep -rn needle . ; grep -rl hay x',
  'text is replaced': 'printf "one two\\n" > t; sed -i "s/two/three/" t; cat t; sed -n 1p t; sed -E "s/(o)(n)/\\2\\1/g" t; sed "1i head" t',
  'sed with a loop': 'printf "a\\nb\\nc\\n" | sed ":a;N;\\$!ba;s/\\n/,/g"',
  'awk sums': 'seq 1 10 | awk "{s+=\\$1} END {print s, s/NR; printf \\"%.3f\\\\n\\", s/3}"',
  'awk arrays and functions':
    'printf "a 1\\nb 2\\na 3\\n" | awk "function d(x){return 2*x} {s[\\$1]+=d(\\$2)} END{for(k in s) print k, s[k]}" | sort',
  'awk runs long': "awk 'BEGIN{for(i=0;i<300000;i++) s+=i; print s % 1000000}'",
  'awk matches': 'echo "a-b_c" | awk "{gsub(/[-_]/,\\" \\"); print toupper(\\$0), length(\\$0), substr(\\$0,2,3), index(\\$0,\\"c\\")}"',
  'sorting by number and key':
    'printf "10 b\\n9 a\\n9 c\\n" | sort -n; printf "x:2\\ny:1\\n" | sort -t: -k2,2n; printf "b\\na\\nb\\n" | sort -u | tac',
  'sorting in the C locale': 'printf "b\\nA\\na\\nB\\n" | LC_ALL=C sort',
  'counting what repeats': 'printf "a\\nb\\na\\n" | sort | uniq -c | sort -rn | sed "s/^ *//"',
  joining: 'printf "1 a\\n2 b\\n" > l; printf "1 x\\n2 y\\n" > r; join l r; paste l r',
  'heads and tails': 'seq 100 > n; head -n 2 n; tail -n 2 n; tail -n +99 n; head -c 3 n',
  'characters are translated': 'echo Hello | tr a-z A-Z; echo aabb | tr -s a; echo a1b2 | tr -d 0-9; echo abc | rev',
  splitting: 'seq 5 > n; split -l 2 n part; ls part*; cat partac',
  'base64 and sums':
    'printf hello | base64; printf aGVsbG8= | base64 -d; echo; printf hello | md5sum; printf hello | sha256sum | cut -c1-12',
  archives: 'mkdir d; echo x > d/f; tar czf d.tgz d; tar tzf d.tgz; rm -r d; tar xzf d.tgz; cat d/f; gzip -k d/f; zcat d/f.gz',
  JSON: 'echo "{\\"a\\":[1,2,{\\"b\\":3}]}" | jq -c ".a[2].b, (.a|length), (.a|map(numbers)|add)"',
  'JSON runs long': 'jq -n "[range(300000)]|add"',
  'formatted output': 'printf "%05.2f|%-5s|%5s|%x|%o|%e\\n" 3.14159 ab cd 255 8 12345.678; printf "%s\\n" a b',
  'quoting and expansion': 'x="a b"; echo "$x" | wc -w; echo ${#x} ${x/a/c} ${x%b} ${x#a } ${x^^} ${y:-none} "${x:2:1}"',
  arrays:
    'a=(x y z); echo ${#a[@]} ${a[1]} "${a[@]:1}"; a+=(w); for i in "${!a[@]}"; do echo $i=${a[$i]}; done; declare -A m; m[k]=v; echo ${m[k]}',
  'reading lines':
    'printf "a b\\nc d\\n" | while read -r x y; do echo "$y-$x"; done; mapfile -t l < <(seq 3); echo ${#l[@]}; IFS=, read -r p q <<< "1,2"; echo $p$q',
  'branches and loops':
    'for i in {1..3}; do case $i in 2) echo two;; *) echo $i;; esac; done; i=0; while ((i<3)); do ((i++)); done; echo $i; until [ $i = 0 ]; do i=$((i-1)); done; echo $i',
  functions: 'f() { local x=$1; echo "$((x*2))"; return 3; }; f 4; echo $?; g() { echo "${FUNCNAME[0]} $# $*"; }; g a b',
  'recursion in arithmetic': 'fib() { if (($1<2)); then echo $1; else echo $(( $(fib $(($1-1))) + $(fib $(($1-2))) )); fi; }; fib 10',
  'recursion deep': 'd() { if (($1>0)); then d $(($1-1)); else echo bottom; fi; }; d 500',
  'a long count': 'seq 1 1200000 | tail -n 1; seq 0 0.5 2',
  'a long array': 'a=($(seq 1 150000)); echo ${#a[@]}',
  'patterns of files': 'touch a1 a2 b1; echo a* ; echo [ab]1; shopt -s nullglob; echo z*; echo "$(ls b?)"',
  'a here-document': 'x=1; cat <<E1\n$x $((x+1))\nE1\ncat <<"E2"\n$x\nE2',
  redirections:
    'echo out; echo err >&2; { echo a; echo b >&2; } > o 2> e; cat o e; echo more >> o; wc -l < o; ls nothing 2>/dev/null; echo $?',
  'exit codes': 'false; echo $?; (exit 7); echo $?; ! true; echo $?; nothing-of-that-name; echo $?',
  'time limits': 'timeout 1 sleep 5; echo $?; timeout 5 echo quick',
  scripts: 'printf "#!/bin/bash\\necho \\$0 \\$1\\n" > s.sh; chmod +x s.sh; ./s.sh arg; bash s.sh b; source s.sh c >/dev/null; echo $?',
  'variables of the environment':
    'export A=1; bash -c "echo \\$A"; B=2 env | grep ^B=; unset A; echo "[$A]"; env -i C=3 bash -c "echo \\$C"',
  'where programs are': 'command -v ls >/dev/null; echo $?; type cd; which nothing-of-that-name; echo $?',
  tests: '[ 3 -gt 2 ] && echo gt; [[ abc =~ ^a(b) ]] && echo ${BASH_REMATCH[1]}; [[ abc == a* ]] && echo glob; test -z "" && echo empty',
  tables:
    'printf "a 1\\nbb 22\\n" | column -t; printf "a b c d e f g h\\n" | fold -w 5; printf "x\\n" | nl | sed "s/\\t/ /;s/^ *//"; seq 3 | tee copy >/dev/null; cat copy',
  'finding and acting':
    'touch a.txt b.txt c.md; find . -name "*.txt" -exec echo {} \\; | sort; find . -type f ! -name "*.md" | wc -l; find . -name c.md -delete; ls',
  SQLite: 'sqlite3 d.db "create table t(a,b); insert into t values(1,2),(3,4); select sum(a),max(b) from t"',
  'Python computes': 'python3 -c "print(2**100, 7//2, round(2.5), sum(range(10)))"; echo "print(1+1)" > p.py; python3 p.py',
  'Python reads and writes':
    'printf "a,b\\n1,2\\n" > t.csv; python3 -c "import csv; print([dict(r) for r in csv.DictReader(open(\'t.csv\'))])"; python3 - <<E\nopen("o","w").write("x")\nE\ncat o',
  'Python fails':
    'python3 -c "1/0" 2>&1 | tail -n 1; python3 -c "import sys; sys.exit(3)"; echo $?; python3 nothing.py 2>/dev/null; echo $?',
  'Node reads files': "echo hi > f; node -e \"console.log(require('fs').readFileSync('f','utf8').trim())\"",
  'substitution of processes': 'diff <(echo a) <(echo a) && echo same; cat <(echo x) > y; cat y',
  'options of the shell': 'set -- a b c; echo $# $2; shift; echo $1; getopts ab: o -b val; echo $o $OPTARG',
  subshells: 'x=1; (x=2; cd /; echo $x); echo $x; pwd; y=$(echo in; exit 4); echo $? $y',
  'printing without end': 'printf "%0.s-" {1..40}; echo; printf "=%.0s" $(seq 5); echo; echo -e "a\\tb"; echo -n x; echo',
  'sizes of files': 'printf 12345 > a; stat -c %s a; wc -c < a',
  paths: 'mkdir -p a/b; cd a/b; basename $PWD; dirname /x/y; cd - >/dev/null; pwd; pushd a >/dev/null; popd >/dev/null; pwd',
  'ending on errors': 'bash -c "set -e; false; echo no"; echo $?',
  'mathematics of the shell': 'let x=3*4; echo $x; ((x+=2)); echo $x; echo $((x>10?1:0)) $((~5)) $((5&3)) $((5^3))',
  'characters beyond ASCII': 'x="żółć😀"; echo ${#x} ${x:0:2}; echo "$x" | wc -m; printf "%s" "$x" | wc -c',
  'shifts and bits':
    'echo $((1<<31)) $((1<<40)) $((-7>>1)) $((~7)) $((-5^3)) $((0xffffffff & 0xff00ff00)) $((0xdeadbeef ^ 0x12345678)) $((-1<<40))',
  'steps and assignments':
    'i=5; echo $((i++ + ++i)) $i $((i+=2)) $((i<<=2)) $((i>>=1)) $((i%=5)); let "x = 1 << 33" y=x+1; echo $x $y; ((z=x>=3)); echo $z',
  'elements of arrays in arithmetic':
    'a=(1 2 3); echo $((a[1]+a[2])) $((a[0]++)) ${a[0]} $((${#a[@]}*2)); declare -A m=([k]=5); ((m[k]+=2)); echo ${m[k]}',
  'loops that count':
    'for ((i=0,j=10;i<j;i+=3,j--)); do echo $i $j; done; x=5; while (( x > 0 )); do (( x -= 2 )); done; echo $x; until ((x>=3)); do ((x++)); done; echo $x',
  'octal and other bases': 'x=010; echo $((x)) $((x+1)) $((0x1F)) $((017)) $((2#1010)) $((36#z)) $((16#ff))',
  'functions in arithmetic': 'f() { echo 3; }; x=1.txt; echo $(( $(f) + ${x%.txt} )) $((${#x}))',
  'a hash of a word': 'h=7; for c in 97 98 99; do h=$(( (h*31 + c) & 0xffffffff )); done; echo $h',
  'a mistake in arithmetic that is caught': '((1/0)) 2>/dev/null || echo caught',
  quoting: `echo "a  b" 'c"d' $'e\\tf' "g\\$h" a\\ b "$(echo "x y")"; for f in "a b" c; do echo "<$f>"; done`,
  'expansions of variables':
    'x=hello; echo ${x:1:3} ${x: -2} ${x#*l} ${x##*l} ${x%l*} ${x%%l*} ${x/l/L} ${x//l/L} ${x^} ${x^^} ${#x}; y=; echo ${y:-d} ${z:=w} $z ${z:+set}',
  indirection: 'x=y; y=z; echo ${!x}; eval "echo \\$$x"; f() { eval "echo \\$1"; }; f a; eval "((q=1<<33))"; echo $q',
  'cases that fall through': 'case abc in a*) echo one;;& *c) echo two;; esac; case x in [a-m]) echo a;; [n-z]) echo b;; esac',
  'control of loops':
    'for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done; for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; echo $i$j; done; done',
  'scope of variables': 'x=1; f() { local x=2; g; }; g() { echo $x; x=3; }; f; echo $x; h() { return 300; }; h; echo $?',
  'status of pipes': 'false | true | false; echo ${PIPESTATUS[@]}; ! false; echo $?; set -o pipefail; false | cat; echo $?',
  descriptors: 'exec 3> out; echo to3 >&3; exec 3>&-; cat out; echo x 2>&1 >/dev/null | wc -l; { echo a; echo b >&2; } 2>&1 | sort',
  'scripts by their path':
    'printf "#!/bin/bash\\necho \\$0 \\$1; exit 4\\n" > s.sh; chmod +x s.sh; ./s.sh arg; echo $?; chmod -x s.sh; ./s.sh; echo $?; ./nothing; echo $?',
  'scripts of Python by their path':
    'printf "#!/usr/bin/env python3\\nimport sys\\nprint(sys.argv[1:])\\n" > p.py; chmod +x p.py; ./p.py a b',
  'files that are sourced': 'echo "v=\\$((1<<40)); f() { echo f \\$1; }" > lib.sh; source lib.sh; echo $v; f x; . ./lib.sh && echo ok',
  'options of bash':
    'bash -e -c "false; echo no"; echo $?; bash -ec "false; echo no"; echo $?; bash -c "echo \\$0 \\$@" z 1 2; bash -o pipefail -c "false | true"; echo $?',
  'a mistake ends the line': 'set -u 2>/dev/null; echo ${a:-none}; x=$((1+1)); readonly x; echo $x',
  'the folder before names that grep finds':
    'mkdir x; echo needle > x/f; grep -rn needle .; grep -rl needle ./x; grep -r needle x; grep -c needle x/f',
  'a clean environment': 'env -i C=3 bash -c "echo \\$C"; A=1 env B=2 printenv A B',
  'several listings': 'touch a1 a2 b1; ls a* b*; mkdir d1 d2; touch d1/x; ls d1 d2; ls -a d1; ls -d d*',
  'order of the C locale':
    'touch b A a B; ls; echo *; printf "b\\nA\\na\\nB\\n" | sort; [[ a < B ]] && echo lt || echo ge; printf "b\\nA\\n" | sort -f; printf "x10\\nx2\\n" | sort -V',
  'sed by addresses': `printf "a\\nb\\nc\\nd\\n" > t; sed -n "2,3p" t; sed "/b/d" t; sed "/a/,/c/s/^/> /" t; sed -n "/b/=" t; sed "1~2d" t; sed 2q t; sed "$!d" t`,
  'sed by groups': `sed "s/a/b/2" <<< aaa; sed -e "s/x/y/" -e "s/y/z/" <<< x; sed "s/\\(a\\)\\(b\\)/\\2\\1/" <<< ab; sed "y/abc/xyz/" <<< cab; sed -E "s/[0-9]+/<&>/g" <<< a1b22; sed "s|/|:|g" <<< /a/b; sed "s/A/x/I" <<< a`,
  'sed inserts': `printf "1\\n2\\n" > t; sed "1a after" t; sed "2i before" t; sed "1c changed" t; sed -i "s/1/one/" t; cat t`,
  'awk fields': `printf "a:b\\nc:d:e\\n" | awk -F: "{print \\$1, NF, NR}"; echo "a b c" | awk "{print \\$NF; \\$1=\\"z\\"; print}"; awk "NR==2{print; exit}" <<< $'a\\nb\\nc'`,
  'awk numbers': `awk "BEGIN{print 2^10, 7%3, int(3.7), 1/3, 1e6, 0.1+0.2, -7%3}"; awk -v x=3 "BEGIN{printf \\"%03d|%.2f|%5s|%-5s|\\\\n\\", x, 2.345, \\"r\\", \\"l\\"}"`,
  'awk texts': `awk "BEGIN{print length(\\"abc\\"), substr(\\"hello\\",2,3), index(\\"hello\\",\\"l\\"), toupper(\\"a\\"), match(\\"foobar\\",\\"o+\\"), RSTART, RLENGTH}"; awk "!seen[\\$0]++" <<< $'a\\nb\\na'`,
  'awk exits':
    'awk "BEGIN{exit 3}"; echo $?; awk "{print > \\"o\\"}" <<< x; cat o; awk "function f(n){return n<2?1:n*f(n-1)} BEGIN{print f(10)}"',
  'jq filters': `echo '[{"n":"a","v":2},{"n":"b","v":1}]' > j; jq -r '.[].n' j; jq -c 'sort_by(.v)|map(.v)' j; jq '[.[]|select(.v>1)]|length' j; jq -c '.[0]|keys' j; jq -r '.[]|"\\(.n)=\\(.v)"' j; jq -c 'map({(.n):.v})|add' j`,
  'jq fails': `echo '{}' | jq -e .a; echo $?; echo '"x"' | jq -r .; jq -n --arg a 1 '$a'; echo '1 2' | jq -s -c .`,
  'tar of a folder':
    'mkdir -p d/e; echo x > d/e/f; tar cf d.tar d; tar tf d.tar; mkdir o; tar xf d.tar -C o; cat o/d/e/f; tar czf d.tgz -C d e; tar tzf d.tgz',
  'gzip and back': 'echo hello > f; gzip f; ls; gunzip f.gz; cat f; gzip -c f | zcat; gzip -c f | gunzip -c | wc -c',
  'find by kind and name':
    'mkdir -p p/q; touch p/a.txt p/q/b.md; find p -type d | sort; find p -maxdepth 1 -type f; find . -name "*.md" -exec echo {} +; find . -empty -type f | wc -l; find . -iname "A*"',
  'xargs and find': 'touch "a b.txt" c.txt; find . -name "a*.txt" -print0 | xargs -0 ls; printf "1 2\\n" | xargs echo x',
  'sort by several keys':
    'printf "a 2\\nb 1\\na 1\\n" | sort -k1,1 -k2,2n; printf "1,b\\n1,a\\n" | sort -t, -k2; printf "3\\n1\\n2\\n" | sort -rn; printf "a\\na\\n" | sort | uniq -d; sort -c <<< $\'b\\na\' 2>/dev/null; echo $?',
  'uniq and cut':
    'printf "a\\na\\nb\\n" | uniq; printf "a b\\n" | cut -d" " -f2; echo abcdef | cut -c2-4; printf "a:b:c\\n" | cut -d: -f1,3',
  'counting words': 'printf "a b\\nc\\n" > t; wc t; wc -l t; wc -w < t; wc -c t; printf "no newline" | wc -l',
  'Python packages at hand':
    "python3 -c \"import json, re, math, collections, itertools, datetime, random, os, sys, statistics; print(json.dumps({'a': [1, 2]}), re.sub('a', 'b', 'aa'), math.factorial(20), statistics.mean([1,2,3]))\"",
  'Python reads input':
    'echo "3 4" | python3 -c "a,b=map(int,input().split()); print(a*b)"; seq 3 | python3 -c "import sys; print(sum(map(int, sys.stdin)))"',
  "Python modules of one's own":
    'mkdir m; echo "def f(): return 42" > m/__init__.py; python3 -c "import m; print(m.f())"; echo "import sys; print(sys.argv)" > a.py; python3 a.py x "y z"',
  'Python tracebacks':
    'printf "def f():\\n    raise ValueError(\'x\')\\nf()\\n" > t.py; python3 t.py 2>&1 | tail -n 1; echo ${PIPESTATUS[0]}',
  'a SQL join':
    'sqlite3 :memory: "create table a(x); create table b(x,y); insert into a values(1),(2); insert into b values(2,\'two\'); select a.x, y from a join b on a.x=b.x"',
  'exit code of what is last':
    '(exit 5); echo $?; f() { false; }; f; echo $?; if false; then :; fi; echo $?; x=$(exit 3); echo $?; local_() { local y=$(exit 3); echo $?; }; local_; false || true; echo $?',
  'names in a listing': 'touch a; ls -l | wc -l; ls -l a | cut -c1-10',
}
