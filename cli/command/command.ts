/**
 * Runs a command line with citty. citty finds values and ignores what it does not know: unknown flags, extra arguments,
 * missing values. It exits with 1 for all errors and repeats values in some. So this module (1) finds the command that
 * the words name, (2) checks every argument against the command's definition, before any work is done and without
 * repeating a value, (3) gives the rest to citty.
 *
 * A flag has two properties that citty does not know: `repeatable` (its values are the lines of one text) and `hidden`
 * (it works and is left out of the help).
 */
import { type ArgDef, type ArgsDef, type CommandMeta, runCommand, type SubCommandsDef } from 'citty'
import { Failure } from '../../src/failure.ts'
import { nearest } from '../../src/lib/text/nearest.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { connectionFlagNames, helpText } from './help.ts'

/** A citty command with any arguments. */
export type Command = Exclude<SubCommandsDef[string], Promise<unknown> | (() => unknown)>

/** Runs the command that the arguments name, or prints its help. `onFound` is told its name as soon as it is known. */
export async function runCommandLine(
  root: Command,
  rawArguments: readonly string[],
  terminal: Terminal,
  onFound: (path: string) => void = () => undefined,
): Promise<void> {
  const { command, path, rest } = await findCommand(root, rawArguments, terminal.name, onFound)
  const beforeSeparator = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest
  if (beforeSeparator.some(isHelp)) {
    await terminal.write(await helpOf(command, path, terminal))
  } else if (command.run === undefined) {
    terminal.note(await helpOf(command, path, terminal))
    throw new Failure('usage', { message: `${path} needs a command` })
  } else {
    const args = await argumentsOf(command)
    const rawArgs = checkArguments(rest, args)
    await runCommand({ ...command, args: withoutChoices(args) }, { rawArgs }).catch((error: unknown) => {
      // citty's complaint about a required argument; its class is not exported.
      if (!(error instanceof Error && error.name === 'CLIError')) throw error
      throw new Failure('usage', { message: Bun.stripANSI(error.message) })
    })
  }
}

interface Found {
  command: Command
  /** The words that name it, from the executable's name on. */
  path: string
  /** Its arguments. */
  rest: readonly string[]
}

/** Connection flags may precede a command's name. Throws `usage` for an unknown command. */
export async function findCommand(
  root: Command,
  rawArguments: readonly string[],
  name: string,
  onFound: (path: string) => void = () => undefined,
): Promise<Found> {
  let found: Found = { command: root, path: name, rest: rawArguments }
  const early: string[] = []
  for (;;) {
    const { command, path } = found
    onFound(path)
    const children = await childrenOf(command)
    if (children === null) break
    const usual = await resolved(command.default)
    const taken = takeConnectionFlags(found.rest)
    // What is for the command that the group's name alone runs stays with it.
    const isForUsual = usual !== undefined && !Object.hasOwn(children, taken.rest[0] ?? '')
    const { flags, rest } = isForUsual ? { flags: [], rest: found.rest } : taken
    early.push(...flags)
    found = { command, path, rest }
    const [word, ...others] = rest
    if (usual !== undefined && (word === undefined || (word.startsWith('-') && !isHelp(word)))) {
      found = { command: await load(children, usual), path: `${path} ${usual}`, rest }
    } else if (word === undefined || isHelp(word)) break
    else if (Object.hasOwn(children, word)) {
      found = { command: await load(children, word), path: `${path} ${word}`, rest: others }
    } else {
      const what = word.startsWith('-') ? 'option' : 'command'
      const names = Object.keys(children)
      const near = nearest(word, names)
      const hint = near === null ? `use one of ${names.join(', ')}` : `did you mean ${near}?`
      throw new Failure('usage', { message: `Unknown ${what} "${flagPart(word)}" for ${path}: ${hint}` })
    }
  }
  return { ...found, rest: [...early, ...found.rest] }
}

type Children = Readonly<Record<string, SubCommandsDef[string]>>

/** Null where a command has no commands of its own. */
const childrenOf = async (command: Command): Promise<Children | null> => (await resolved(command.subCommands)) ?? null

async function load(children: Children, name: string): Promise<Command> {
  const command = await resolved<Command | undefined>(children[name])
  if (command !== undefined) return command
  throw new Failure('internal', { message: `There is no command ${name}` })
}

/** The command of a group with this name; null where there is none. */
export async function childOf(command: Command, name: string): Promise<Command | null> {
  const children = (await childrenOf(command)) ?? {}
  return Object.hasOwn(children, name) ? await load(children, name) : null
}

/** The commands of a group by name, hidden ones left out; none for another command. */
export async function subCommandsOf(command: Command): Promise<readonly (readonly [name: string, Command])[]> {
  const children = (await childrenOf(command)) ?? {}
  const loaded = Object.keys(children).map(async (name) => [name, await load(children, name)] as const)
  const shown = (await Promise.all(loaded)).map(
    async ([name, child]) => [name, child, (await resolved(child.meta))?.hidden === true] as const,
  )
  return (await Promise.all(shown)).flatMap(([name, child, hidden]) => (hidden ? [] : [[name, child] as const]))
}

/** The command that runs if a group is called by its name alone; for other commands the command itself. */
export async function usualCommandOf(command: Command): Promise<Command> {
  const [children, usual] = [await childrenOf(command), await resolved(command.default)]
  return children === null || usual === undefined ? command : await load(children, usual)
}

/** What a command takes; hidden flags too. */
export const argumentsOf = async (command: Command): Promise<ArgsDef> => (await resolved(command.args)) ?? {}

/** What the help shows of it. */
export const shownArguments = async (command: Command): Promise<ArgsDef> =>
  Object.fromEntries(Object.entries(await argumentsOf(command)).filter(([, argument]) => !is(argument, 'hidden')))

/** What a command says of itself. */
export const metaOf = async (command: Command): Promise<CommandMeta> => (await resolved(command.meta)) ?? {}

/** What a command does, in one sentence. */
export const descriptionOf = async (command: Command): Promise<string> => (await metaOf(command)).description ?? ''

/** citty accepts a value, a promise of one, or a function that returns either. */
async function resolved<Value>(given: Value | Promise<Value> | (() => Value | Promise<Value>)): Promise<Value> {
  return await (given instanceof Function ? given() : given)
}

const is = (argument: ArgDef, what: 'hidden' | 'repeatable'): boolean => what in argument

/** For citty, which would take the lines of a repeated flag for one choice: `checkArguments` has checked each. */
const withoutChoices = (definitions: ArgsDef): ArgsDef =>
  Object.fromEntries(
    Object.entries(definitions).map(([name, definition]) => [
      name,
      definition.type === 'enum' && is(definition, 'repeatable') ? { ...definition, type: 'string' } : definition,
    ]),
  )

/** The help of a command, and of the one that its name alone runs. */
export async function helpOf(command: Command, path: string, terminal: Terminal): Promise<string> {
  const [meta, args, usual] = [await metaOf(command), await shownArguments(command), await usualCommandOf(command)]
  const subCommands = await resolved(command.subCommands)
  const text = await helpText({ meta, args, subCommands }, path, terminal)
  return usual === command
    ? text
    : `${text}\n${await helpOf(usual, `${path} ${await resolved(command.default)}`, terminal)}`
}

/** Each of these flags takes a value. */
function takeConnectionFlags(rawArguments: readonly string[]): { flags: readonly string[]; rest: readonly string[] } {
  const [first = '', second] = rawArguments
  const name = flagPart(first)
  if (!connectionFlagNames.some((known) => name === `--${known}`)) return { flags: [], rest: rawArguments }
  if (first === name) checkValue(name, second)
  const used = first === name ? 2 : 1
  const { flags, rest } = takeConnectionFlags(rawArguments.slice(used))
  return { flags: [...rawArguments.slice(0, used), ...flags], rest }
}

const isHelp = (argument: string): boolean => argument === '--help' || argument === '-h'

/** An argument without the value written into it, which may be a secret. */
const flagPart = (argument: string): string => (argument.startsWith('-') ? (argument.split('=')[0] ?? '') : argument)

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/**
 * Throws `usage` for arguments that citty would ignore or repeat. Returns the arguments for citty: a repeated flag
 * occurs once, with its values as lines.
 */
export function checkArguments(rawArguments: readonly string[], definitions: ArgsDef): string[] {
  const flags = flagsOf(definitions)
  const positionals = Object.values(definitions).filter(({ type }) => type === 'positional')
  const seen = new Set<string>()
  const repeated = new Map<string, string[]>()
  const others: string[] = []
  let given = 0
  for (let index = 0; index < rawArguments.length; index++) {
    const argument = rawArguments[index] ?? ''
    if (argument === '--') {
      given += rawArguments.length - index - 1
      others.push(...rawArguments.slice(index))
      break
    }
    if (!argument.startsWith('-') || argument === '-') {
      given += 1
      others.push(argument)
      continue
    }
    const written = flagPart(argument)
    const flag = flags.get(written)
    if (!flag) {
      const names = [...flags.keys(), '--help']
      const near = names.find((name) => name.startsWith(written)) ?? nearest(written, names)
      const hint = near === null ? '' : `: did you mean ${near}?`
      throw new Failure('usage', { message: `Unknown option ${written}${hint}` })
    }
    const { name, definition } = flag
    const repeats = is(definition, 'repeatable')
    if (seen.has(name) && !repeats) throw new Failure('usage', { message: `${written} is given twice` })
    seen.add(name)
    if (definition.type === 'boolean') {
      if (argument !== written) throw new Failure('usage', { message: `${written} takes no value` })
      others.push(argument)
      continue
    }
    const value = argument === written ? rawArguments[++index] : argument.slice(written.length + 1)
    checkValue(written, value, argument !== written)
    checkChoice(written, value, definition)
    if (repeats) repeated.set(name, [...(repeated.get(name) ?? []), value])
    else others.push(`--${name}=${value}`)
  }
  if (given > positionals.length && !positionals.some((definition) => is(definition, 'repeatable'))) {
    const message = positionals.length === 0 ? 'This command takes no argument' : 'Too many arguments'
    throw new Failure('usage', { message })
  }
  const missing = Object.entries(definitions).find(
    ([name, { type, required, default: usual }]) =>
      type !== 'positional' && required === true && usual === undefined && !seen.has(name),
  )
  if (missing !== undefined) throw new Failure('usage', { message: `Missing required argument: --${missing[0]}` })
  return [...[...repeated].map(([name, values]) => `--${name}=${values.join('\n')}`), ...others]
}

/** Flags by all their spellings. */
function flagsOf(definitions: ArgsDef): Map<string, { name: string; definition: ArgDef }> {
  const flags = new Map<string, { name: string; definition: ArgDef }>()
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.type === 'positional') continue
    const aliases = 'alias' in definition ? [definition.alias ?? []].flat() : []
    const spellings = [
      `--${name}`,
      `--${kebab(name)}`,
      ...(definition.type === 'boolean' ? [`--no-${name}`] : []),
      ...aliases.map((alias) => (alias.length === 1 ? `-${alias}` : `--${alias}`)),
    ]
    for (const spelling of spellings) flags.set(spelling, { name, definition })
  }
  return flags
}

/** A value in an argument of its own that looks like a flag is one: the value was forgotten. */
function checkValue(written: string, value: string | undefined, attached = false): asserts value is string {
  if (value === undefined || value === '' || (!attached && value.startsWith('--'))) {
    throw new Failure('usage', { message: `${written} needs a value` })
  }
}

function checkChoice(written: string, value: string, definition: ArgDef): void {
  if (definition.type !== 'enum' || definition.options === undefined) return
  const values = is(definition, 'repeatable') ? value.split(',') : [value]
  if (values.every((each) => definition.options?.includes(each))) return
  const meant = nearest(value, definition.options)
  const hint = meant === null ? '' : `: did you mean ${meant}?`
  throw new Failure('usage', { message: `${written} takes ${definition.options.join(', ')}${hint}` })
}
