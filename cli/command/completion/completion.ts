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
import { bashScript, quotedFor, readLine } from './bash.ts'
import { type Place, valuesOf } from './completion-values.ts'

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
      const { name } = terminal
      await terminal.write(shell === 'bash' ? bashScript(name) : await scriptText(shell, name))
    },
  })

/** The library can only write the script with `console.log`. */
async function scriptText(shell: Exclude<Shell, 'bash'>, name: string): Promise<string> {
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

/** What the scripts ask. */
const complete = (root: () => Command, terminal: Terminal) =>
  defineCommand({
    meta: { hidden: true, description: 'Complete the words after --' },
    args: {
      words: { type: 'positional', required: false, repeatable: true },
      bash: { type: 'string', description: 'What follows -- is a line of bash, which cuts words at these characters' },
    },
    async run({ rawArgs, args }) {
      const words = rawArgs.slice(rawArgs.indexOf('--') + 1)
      const line = args.bash === undefined ? null : readLine(words[0] ?? '', args.bash)
      const asked = { terminal, isAnyName: line !== null }
      const { candidates, before, files } = await candidatesFor(root(), line?.words ?? words, asked)
      const lines =
        line === null
          ? candidates.map(([value, about]) => (about === '' ? value : `${value}\t${about}`))
          : candidates.flatMap(([value]) => quotedFor(line, before + value) ?? [])
      await terminal.write([...lines, files ? ':0' : ':4', ''].join('\n'))
    },
  })

type Candidate = readonly [value: string, about: string]

interface Offered {
  candidates: readonly Candidate[]
  /** What of the last word stands before them: `--team=`. */
  before: string
  /** Whether the shell offers files where there is no candidate. */
  files: boolean
}

/** What may stand in the place of the last word. */
async function candidatesFor(
  root: Command,
  words: readonly string[],
  { terminal, isAnyName }: Pick<Place, 'terminal' | 'isAnyName'>,
): Promise<Offered> {
  const reached = await reach(root, words.slice(0, -1))
  const last = words.at(-1) ?? ''
  const [flagWritten, value] = splitFlag(last)
  const isWithin = reached.awaits === null && value !== undefined
  const awaited = reached.awaits ?? (isWithin ? flagNamed(reached.args, flagWritten) : null)
  const written = isWithin ? value : last
  const before = isWithin ? `${flagWritten}=` : ''
  const among = (candidates: readonly Candidate[], files = false): Offered => ({
    candidates: candidates.filter(([candidate]) => candidate.startsWith(written)),
    ...{ before, files },
  })
  const place = { path: reached.path, flags: reached.flags, terminal, isAnyName }
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
  const others = positionals.filter(([, positional]) => Reflect.get(positional, 'repeatable') === true)
  const [name, definition] = positionals[reached.given] ?? others.at(-1) ?? []
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
      const name = flagNamed(reached.args, flag)
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

/** The name of a flag as it was written; `-f` is that of `--file`. */
function flagNamed(args: ArgsDef, written: string): string {
  const name = written.replace(/^--?/, '')
  const isAlias = ([, definition]: [string, ArgDef]) => [Reflect.get(definition, 'alias')].flat().includes(name)
  return args[name] === undefined ? (Object.entries(args).find(isAlias)?.[0] ?? name) : name
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
