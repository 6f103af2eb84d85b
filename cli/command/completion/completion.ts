/**
 * `completion bash|zsh|fish|powershell` prints a script for the shell to load; the script calls `completion complete`
 * at each key press, so that it stays correct when the executable is replaced. What it answers is a line for each
 * candidate, with its description behind a tab, and a last line that tells the shell to offer no files beside them, or
 * to offer files alone (the protocol of cobra's scripts).
 */
import { type ArgDef, type ArgsDef, defineCommand } from 'citty'
import type { Terminal } from '../../terminal/terminal.ts'
import {
  argumentsOf,
  type Command,
  childOf,
  descriptionOf,
  shownArguments,
  subCommandsOf,
  usualCommandOf,
} from '../command.ts'
import { connectionFlags } from '../profile.ts'
import { valuesOf } from './completion-values.ts'

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const
type Shell = (typeof shells)[number]

/** `root` returns the commands to complete. */
export const completion = (terminal: Terminal, root: () => Command) =>
  defineCommand({
    meta: { description: 'Print a script that completes commands, options, names and values in a shell' },
    subCommands: {
      ...Object.fromEntries(shells.map((shell) => [shell, async () => scriptFor(shell, terminal)])),
      complete: async () => complete(root, terminal),
    },
  })

const loading: Readonly<Record<Shell, (name: string) => string>> = {
  bash: (name) => `source <(${name} completion bash)`,
  zsh: (name) => `source <(${name} completion zsh)`,
  fish: (name) => `${name} completion fish | source`,
  powershell: (name) => `${name} completion powershell | Out-String | Invoke-Expression`,
}

const scriptFor = (shell: Shell, terminal: Terminal) =>
  defineCommand({
    meta: { description: `For ${shell}: ${loading[shell](terminal.name)}` },
    args: {},
    async run() {
      const text = await scriptText(shell, terminal.name)
      await terminal.write(shell === 'bash' ? forBash(text) : text)
    },
  })

/** The library can only write the script with `console.log`. */
async function scriptText(shell: Shell, name: string): Promise<string> {
  const { script } = await import('@bomb.sh/tab')
  const { log } = console
  const lines: string[] = []
  console.log = (text: string) => void lines.push(text)
  try {
    script(shell, name, `${name} completion`)
  } finally {
    console.log = log
  }
  return `${lines.join('\n')}\n`
}

/**
 * Changes three things of a bash script:
 *
 * - The values of constants stand in place of their names: bash refuses a second `readonly` of one name, by this script
 *   loaded twice or by another program's from the same library.
 * - The words are passed on as they are: the library's `eval` would run `$(…)` in an unfinished line.
 * - It works without the package bash-completion.
 */
function forBash(script: string): string {
  const constants = [...script.matchAll(/^readonly (\w+)=(\d+)$/gm)]
  const bare = script
    .replaceAll(/^readonly \w+=\d+\n/gm, '')
    .replace(/^ *requestComp="(.*) \$\{words\[@\]:1\}"\n/m, `    local -a request=($1 "\${words[@]:1:cword}")\n`)
    .replace(/^ *# Add an empty parameter[\s\S]*?\n *fi\n/m, '')
    .replace('out=$(eval "$requestComp" 2>/dev/null)', `out=$("\${request[@]}" 2>/dev/null)`)
    .replace(
      /^ *_get_comp_words_by_ref (.*)$/m,
      `    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref $1
    else
        words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD cur=\${COMP_WORDS[COMP_CWORD]}
    fi`,
    )
  return constants.reduce((text, [, name, value]) => text.replaceAll(`$${name}`, value ?? ''), bare)
}

/** What the scripts ask. */
const complete = (root: () => Command, terminal: Terminal) =>
  defineCommand({
    meta: { hidden: true, description: 'Complete the words after --' },
    args: { words: { type: 'positional', required: false, repeatable: true } },
    async run({ rawArgs }) {
      const words = rawArgs[0] === '--' ? rawArgs.slice(1) : rawArgs
      const { candidates, files } = await candidatesFor(root(), words, terminal)
      const lines = candidates.map(([value, about]) => (about === '' ? value : `${value}\t${about}`))
      await terminal.write([...lines, files ? ':0' : ':4', ''].join('\n'))
    },
  })

type Candidate = readonly [value: string, about: string]

interface Offered {
  candidates: readonly Candidate[]
  /** Whether the shell offers files where there is no candidate. */
  files: boolean
}

/** What may stand in the place of the last word. */
async function candidatesFor(root: Command, words: readonly string[], terminal: Terminal): Promise<Offered> {
  const reached = await reach(root, words.slice(0, -1))
  const last = words.at(-1) ?? ''
  const [flagWritten, value] = splitFlag(last)
  const awaited = reached.awaits ?? (value === undefined ? null : flagWritten.replace(/^--/, ''))
  const written = reached.awaits === null ? (value ?? last) : last
  const among = (candidates: readonly Candidate[], files = false): Offered => ({
    candidates: candidates.filter(([candidate]) => candidate.startsWith(written)),
    files,
  })
  const place = { path: reached.path, flags: reached.flags, terminal }
  if (awaited !== null) {
    const definition = reached.args[awaited]
    return among(await valuesOf({ ...place, name: awaited, definition }), definition?.valueHint === 'FILE')
  }
  if (last.startsWith('-')) return among(flagsOf(reached.args))
  const children = await Promise.all(
    (await subCommandsOf(reached.command)).map(async ([name, child]) => [name, await descriptionOf(child)] as const),
  )
  if (children.length > 0) return among(children)
  const positionals = Object.entries(reached.args).filter(([, { type }]) => type === 'positional')
  const [name, definition] = positionals[Math.min(reached.given, positionals.length - 1)] ?? []
  if (name === undefined) return among([])
  return among(await valuesOf({ ...place, name, definition }), name === 'file')
}

interface Reached {
  command: Command
  path: string[]
  /** What it takes; connection flags where it is a group. */
  args: ArgsDef
  /** Flags with their values, for finding the control plane. */
  flags: Record<string, string>
  /** How many positional arguments stand before the last word. */
  given: number
  /** The flag whose value is typed. */
  awaits: string | null
}

/** Where finished words lead. Wrong ones are passed over. */
async function reach(root: Command, words: readonly string[]): Promise<Reached> {
  const reached: Reached = { command: root, path: [], args: connectionFlags, flags: {}, given: 0, awaits: null }
  for (const word of words) {
    const child = word.startsWith('-') ? null : await childOf(reached.command, word)
    if (reached.awaits !== null) {
      reached.flags[reached.awaits] = word
      reached.awaits = null
    } else if (word.startsWith('-')) {
      const [flag, value] = splitFlag(word)
      const name = flag.replace(/^--/, '')
      const definition = reached.args[name]
      if (definition !== undefined && definition.type !== 'boolean' && value === undefined) reached.awaits = name
      if (value !== undefined) reached.flags[name] = value
    } else if (child !== null) {
      reached.command = child
      reached.path.push(word)
      reached.args = { ...connectionFlags, ...(await argumentsOf(await usualCommandOf(child))) }
      const isGroup = (await subCommandsOf(child)).length > 0
      if (!isGroup) reached.args = await shownArguments(child)
    } else reached.given += 1
  }
  return reached
}

function splitFlag(word: string): [flag: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}

const flagsOf = (args: ArgsDef): Candidate[] =>
  Object.entries(args).flatMap(([name, definition]) => flagsFor(name, definition))

function flagsFor(name: string, definition: ArgDef): Candidate[] {
  if (definition.type === 'positional') return []
  const about = definition.description ?? ''
  const canBeOff = definition.type === 'boolean' && definition.negativeDescription !== undefined
  return [[`--${name}`, about], ...(canBeOff ? [[`--no-${name}`, definition.negativeDescription ?? ''] as const] : [])]
}
