"""Command lines, one a line: those that the default rules allow, and those that are asked."""

ALLOWED = """
ls
ls -la src
/bin/ls
/usr/bin/ls -l
l''s
"ls" "-l"
\\ls
ls *.py
ls src/*.py | wc -l
ls -*
grep x *
pwd && ls; whoami
cat README.md
cat 'a file with $(no) substitution'
cat a\\ b
echo hello world
echo '$HOME'
echo "a dollar: $ alone"
printf '%s\\n' hello
head -n 5 pyproject.toml | tail -n 1
grep -rn 'def ' src | sort -u | head
grep foo < /dev/null
cat <input.txt
rg needle src
rg --type py 'class \\w+'
wc -l a.txt 2>/dev/null
ls nowhere 2>&1 | cat
ls # what is there
find . -name x -type f
find src -newer a -print0
git status
git --no-pager log --oneline -5
git diff HEAD~1 -- src
git show --stat
git ls-files
date +%s
sort a | uniq -c
sort names.txt
file README.md
sha256sum a b
jq .name package.json
true || false
""".strip().split("\n")


ASKED = """
rm -r build
touch a
mkdir -p x
make test
npm install
pytest -x
curl http://example.org
unknown-program
./ls
/tmp/ls
src/ls
ls > listing.txt
ls >> listing.txt
echo x >| y
ls &> all.txt
cat < /dev/tcp/127.0.0.1/80
echo $(rm -r build)
echo "$(rm -r build)"
echo `rm -r build`
echo ${HOME}
cat "$FILE"
ls $OPTIONS
ls -l $1
diff <(ls a) <(ls b)
tee >(cat)
cat <<EOF
cat <<<text
A=1 ls
LD_PRELOAD=./x.so ls
PATH=. ls
A=1
$CMD -l
l? -l
* -l
rg x *
sort *
git diff *
echo {a,b}
ls --{a,b}
python -c 'print(1)'
python3 -Ic 'print(1)'
python
echo 'print(1)' | python3 -
node -e '1'
perl -e 1
awk '{print}' file
sed -n 1p file
sh -c ls
bash script.sh
eval ls
source env.sh
. ./env.sh
cd /tmp
exec ls
command ls
builtin echo
export A=1
alias ls=rm
trap ls EXIT
xargs ls
find . -name x | xargs cat
env ls
sudo ls
timeout 5 ls
nohup ls
find . -exec cat {} +
find . -execdir ls ';'
find . -delete
find . -fprint x
rg --pre=./evil foo
rg --pre ./evil foo
rg -z foo
git -c core.pager=evil log
git -C /elsewhere status
git --exec-path=. status
git diff --ext-diff
git diff --ext
git log -p --textconv
git diff --output=x
git log --output x
git push
git config alias.x '!ls'
git commit -m x
git status && git push
sort -o out in
sort --compress-program=./evil in
sort --comp=./evil in
tar --to-command=./evil -xf a.tar
tar xIf ./evil a.tar
ssh -o ProxyCommand=evil host
date -s tomorrow
date 010203042030
printf %n a
printf '%-5ln' a
uniq in out
uniq in
printf -v 'a[$(x)]' y
file -C -m x
tree -o out
ls &
ls & pwd
(ls)
{ ls; }
! ls
time ls
[[ -f a ]]
if true; then ls; fi
for f in a b; do cat $f; done
ls() { rm -r x; }; ls
function ls { rm x; }
ls |
ls &&
| ls
ls ; ; pwd
'unfinished
"unfinished
ls \\
echo "a\\
$'ls'
$"ls"
$[1+1]
$((1+1))
''
ls\r
ls\x00
ls\u00a0-l
ls \u202e-l
cat \u200bx
""".strip("\n").split("\n")
