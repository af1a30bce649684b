// biome-ignore-all lint/suspicious/noTemplateCurlyInString: what stands here is bash.
/** Where commands of the simulated tier answer otherwise than on a machine. */
export interface Difference {
  /** One sentence, in Markdown. */
  readonly text: string
  /** `error`: with a message, or as a program that is missing. `differs`: without a word. */
  readonly answer: 'error' | 'differs'
  /** Commands that show it. A test runs them on both tiers. */
  readonly examples: readonly string[]
}

/** All that is known. The page of the tier, and what its model is told, are made of it. */
export const differences: readonly Difference[] = [
  {
    text: 'Numbers of the shell from 2^53 on are refused.',
    answer: 'error',
    examples: [
      'echo $((2**62))',
      'a=0; b=1; for i in {1..80}; do c=$((a+b)); a=$b; b=$c; done; echo $a',
      'f=1; for i in {1..25}; do f=$((f*i)); done; echo $f',
      'printf "%d\\n" 9223372036854775807',
      'expr 9223372036854775807 - 1',
    ],
  },
  {
    text: '`[ ]` and `[[ ]]` compare numbers from 2^53 on as if they were rounded.',
    answer: 'differs',
    examples: ['[ 9007199254740993 -eq 9007199254740992 ] && echo equal'],
  },
  {
    text: 'Nothing runs in the background: `&`, `jobs`, `kill`, `trap`, `umask` and `ulimit` are refused.',
    answer: 'error',
    examples: [
      'sleep 0.2 & echo first; wait',
      'sleep 5 & jobs; kill %1',
      'trap "echo bye" EXIT; echo hi',
      'umask 077; touch u',
      'ulimit -n >/dev/null',
    ],
  },
  { text: 'One range of braces makes at most 10,000 words.', answer: 'error', examples: ['echo {1..20000} | wc -w'] },
  {
    text: 'A variable that `set -u` refuses ends a script with 1, not 127.',
    answer: 'differs',
    examples: ['bash -c "set -u; echo \\$nope" 2>/dev/null; echo $?'],
  },
  { text: 'The errors of a loop come after its output.', answer: 'differs', examples: ['for i in 1 2; do echo $i; echo e$i >&2; done'] },
  {
    text: '`/dev/zero` and `/dev/urandom` are not there.',
    answer: 'error',
    examples: ['head -c 1000 /dev/zero', 'head -c 16 /dev/urandom | wc -c'],
  },
  {
    text: '`awk` splits records at lines only, and knows no length of an array and no `length` without brackets.',
    answer: 'error',
    examples: ['printf "a;b" | awk "BEGIN{RS=\\";\\"} {print NR}"', 'awk "BEGIN{a[1]; print length(a)}"'],
  },
  { text: '`awk` compares two texts of digits as numbers.', answer: 'differs', examples: ['awk "BEGIN{print (\\"10\\" < \\"9\\")}"'] },
  {
    text: '`sed -i` keeps no copy, and `od` prints octal bytes only.',
    answer: 'error',
    examples: ['echo a > t; sed -i.bak "s/a/b/" t', 'printf "AB\\n" | od -An -tx1'],
  },
  { text: '`diff` answers as `diff -u` does.', answer: 'differs', examples: ['printf "1\\n" > a; printf "2\\n" > b; diff a b'] },
  { text: '`tr` replaces characters, not bytes.', answer: 'differs', examples: ['echo é | tr é e'] },
  { text: '`wc` of an input prints no spaces before numbers.', answer: 'differs', examples: ['printf "" | wc'] },
  { text: '`jq` fails with 5 where its input is no JSON.', answer: 'differs', examples: ["echo '{' | jq . 2>/dev/null; echo $?"] },
  {
    text: 'Other programs are missing, such as `xxd`, `bc`, `zip`, `cmp`, `yes`, `uname`, `id`, `truncate`, `dd`, `realpath`, `curl`, `ed`, `patch` and `git`.',
    answer: 'error',
    examples: [
      'printf AB | xxd -p',
      'echo "2^10 + 1" | bc',
      'echo x > f; zip -q a.zip f',
      'echo x > a; cmp a a',
      'yes | head -n 3',
      'uname -s',
      'id -u',
      'truncate -s 10 t',
      'realpath /tmp',
      'printf "a\\n" > f; printf "1d\\nw\\nq\\n" | ed -s f',
      'patch --version >/dev/null',
    ],
  },
  {
    text: 'Many programs know fewer options, such as `xargs -n -I`, `find -newermt`, `date -r` and `-d "… +2 days"`, `du -b`, `grep -P` with look-behind, `paste` of its input, `sort -z`, `cut -b`, `tail -f`.',
    answer: 'error',
    examples: [
      'printf "a b\\n" | xargs -n1 echo',
      'printf "a\\n" | xargs -I{} echo "<{}>"',
      'touch a; find . -newermt 2024-01-01 -name a',
      'touch -d 2024-02-29T12:00:00Z a; date -u -r a +%F',
      'date -u -d "2024-02-28 +2 days" +%F',
      'touch a; du -b a',
      'echo "k=42" | grep -oP "(?<=k=)\\d+"',
      'seq 4 | paste -sd+',
      'printf "b\\0a\\0" | sort -z | wc -c',
      'echo abc | cut -b1',
    ],
  },
  {
    text: '`python3` starts no programs.',
    answer: 'error',
    examples: ["python3 -c \"import subprocess; print(subprocess.run(['echo','hi'], capture_output=True, text=True).stdout)\""],
  },
  {
    text: '`node` has no timers, no input and no modules of your own.',
    answer: 'error',
    examples: ['node -e "setTimeout(()=>console.log(\'late\'),10)"'],
  },
  { text: '`node` prints arrays without spaces.', answer: 'differs', examples: ['node -e "console.log([1,2])"'] },
]

/** What a model is told of the tier. */
export const differencesText = (): string =>
  differences.map(({ text, answer }) => (answer === 'error' ? text : `Without an error: ${text}`)).join(' ')

/** The page of the table, below its heading. */
export function differencesTable(): string {
  const rows = differences.map(({ text, answer, examples }) => {
    const example = examples[0]!.replaceAll('|', '\\|')
    return `| ${text} | ${answer === 'error' ? 'an error' : '**differs**'} | \`\` ${example} \`\` |`
  })
  return ['| | answer | example |', '|---|---|---|', ...rows].join('\n')
}
