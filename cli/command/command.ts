/**
 * A command whose flags are taken at their word. citty parses values, but ignores what it does not know (unknown flags,
 * extra arguments, missing values), so every argument is checked against the definition first: a mistyped flag is an
 * error before any work is done.
 */
import { type ArgDef, type ArgsDef, parseArgs } from 'citty'
import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { renderGroupHelp, renderLeafHelp } from './help.ts'

type ValueOf<Definition extends ArgDef> = Definition extends { type: 'boolean' }
  ? boolean | undefined
  : Definition extends { type: 'positional'; required: false }
    ? string | undefined
    : Definition extends { type: 'positional' } | { required: true } | { default: string }
      ? string
      : string | undefined

/** What a command's `run` is given: one value for each declared argument. */
export type Values<Definitions extends ArgsDef> = { [Name in keyof Definitions]: ValueOf<Definitions[Name]> }

export interface Leaf {
  about: string
  args: ArgsDef
  /** Checks the arguments, then does the work. */
  run(rawArguments: readonly string[]): Promise<void>
}

/** Commands by name. They are loaded when called: a gateway process never loads what a control plane needs. */
export interface Group {
  about: string
  commands: Readonly<Record<string, () => Promise<Leaf | Group>>>
  /** What runs where no command is named. */
  otherwise?: () => Promise<Leaf>
}

/** Makes a strict command. `hidden` arguments are accepted and left out of the help. */
export function command<const Definitions extends ArgsDef>(definition: {
  about: string
  args: Definitions
  hidden?: ArgsDef
  /** Flags that may be given several times; their values come as the lines of one text. */
  repeatable?: readonly string[]
  run(values: Values<Definitions> & Readonly<Record<string, string | boolean | undefined>>): Promise<void>
}): Leaf {
  const { about, args, hidden = {}, repeatable = [], run } = definition
  return {
    about,
    args,
    async run(rawArguments) {
      const accepted = { ...args, ...hidden }
      const gathered = gatherRepeated(rawArguments, repeatable)
      checkArguments(gathered, accepted)
      await run(parse(gathered, accepted) as Parameters<typeof run>[0])
    },
  }
}

/** Makes one flag of several of the same name; `=` keeps a value that begins with a dash. */
function gatherRepeated(rawArguments: readonly string[], repeatable: readonly string[]): string[] {
  const values = new Map<string, string[]>()
  const others: string[] = []
  for (let index = 0; index < rawArguments.length; index++) {
    const argument = rawArguments[index] ?? ''
    if (argument === '--') {
      others.push(...rawArguments.slice(index))
      break
    }
    const written = flagPart(argument)
    const next = rawArguments[index + 1]
    const separate = argument === written && next !== undefined && next !== '' && !next.startsWith('--')
    const value = separate ? next : argument.slice(written.length + 1)
    if (!repeatable.some((name) => written === `--${name}`) || value === '') others.push(argument)
    else {
      values.set(written, [...(values.get(written) ?? []), value])
      if (separate) index += 1
    }
  }
  return [...[...values].map(([flag, given]) => `${flag}=${given.join('\n')}`), ...others]
}

/** Runs the command that the arguments name, or prints its help. */
export async function dispatch(root: Group, rawArguments: readonly string[], terminal: Terminal): Promise<void> {
  let node: Leaf | Group = root
  let path = terminal.name
  let rest = rawArguments
  const early: string[] = []
  while ('commands' in node) {
    if (!node.otherwise) {
      const taken = takeConnectionFlags(rest)
      early.push(...taken.flags)
      rest = taken.rest
    }
    const [name, ...others] = rest
    if (node.otherwise && (name === undefined || (name.startsWith('-') && !isHelp(name)))) {
      node = await node.otherwise()
      break
    }
    if (name === undefined || isHelp(name)) break
    const load: (() => Promise<Leaf | Group>) | undefined = Object.hasOwn(node.commands, name)
      ? node.commands[name]
      : undefined
    if (!load) {
      const known = Object.keys(node.commands).join(', ')
      const what = name.startsWith('-') ? 'option' : 'command'
      throw new Failure('usage', { message: `Unknown ${what} "${flagPart(name)}" for ${path}: use one of ${known}` })
    }
    node = await load()
    path = `${path} ${name}`
    rest = others
  }
  const beforeSeparator = rest.includes('--') ? rest.slice(0, rest.indexOf('--')) : rest
  if (beforeSeparator.some(isHelp)) {
    await terminal.write(await renderHelp(node, path))
  } else if ('commands' in node) {
    terminal.note(await renderHelp(node, path))
    throw new Failure('usage', { message: `${path} needs a command` })
  } else {
    await node.run([...early, ...rest])
  }
}

/** The flags that say where to connect may stand before a command's name; each takes a value. */
function takeConnectionFlags(rawArguments: readonly string[]): { flags: readonly string[]; rest: readonly string[] } {
  const [first = '', second] = rawArguments
  const name = flagPart(first)
  if (!connectionFlagNames.some((known) => name === `--${known}`)) return { flags: [], rest: rawArguments }
  if (first === name) checkValue(name, second)
  const used = first === name ? 2 : 1
  const { flags, rest } = takeConnectionFlags(rawArguments.slice(used))
  return { flags: [...rawArguments.slice(0, used), ...flags], rest }
}

export const connectionFlagNames = ['api-url', 'config', 'profile', 'region'] as const

const isHelp = (argument: string): boolean => argument === '--help' || argument === '-h'

/** An argument without the value written into it, which may be a secret. */
const flagPart = (argument: string): string => (argument.startsWith('-') ? (argument.split('=')[0] ?? '') : argument)

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Throws `usage` for whatever citty would ignore. Values are never echoed. */
export function checkArguments(rawArguments: readonly string[], definitions: ArgsDef): void {
  const flags = new Map<string, { name: string; definition: ArgDef }>()
  let positionals = 0
  for (const [name, definition] of Object.entries(definitions)) {
    if (definition.type === 'positional') positionals += 1
    else for (const spelling of spellings(name, definition)) flags.set(spelling, { name, definition })
  }
  const seen = new Set<string>()
  let given = 0
  for (let index = 0; index < rawArguments.length; index++) {
    const argument = rawArguments[index] ?? ''
    if (argument === '--') {
      given += rawArguments.length - index - 1
      break
    }
    if (!argument.startsWith('-') || argument === '-') {
      given += 1
      continue
    }
    const written = flagPart(argument)
    const flag = flags.get(written)
    if (!flag) throw new Failure('usage', { message: `Unknown option ${written}` })
    if (seen.has(flag.name)) throw new Failure('usage', { message: `${written} is given twice` })
    seen.add(flag.name)
    if (flag.definition.type === 'boolean') checkSwitch(argument, written)
    else if (argument === written) checkValue(written, rawArguments[++index])
    else if (argument === `${written}=`) throw new Failure('usage', { message: `${written} needs a value` })
  }
  if (given > positionals) {
    throw new Failure('usage', { message: positionals === 0 ? 'This command takes no argument' : 'Too many arguments' })
  }
}

function spellings(name: string, definition: ArgDef): string[] {
  const aliases = 'alias' in definition ? [definition.alias ?? []].flat() : []
  return [
    `--${name}`,
    `--${kebab(name)}`,
    ...(definition.type === 'boolean' ? [`--no-${name}`] : []),
    ...aliases.map((alias) => (alias.length === 1 ? `-${alias}` : `--${alias}`)),
  ]
}

function checkSwitch(argument: string, written: string): void {
  if (argument !== written) throw new Failure('usage', { message: `${written} takes no value` })
}

function checkValue(written: string, value: string | undefined): void {
  if (value === undefined || value === '' || value.startsWith('--')) {
    throw new Failure('usage', { message: `${written} needs a value` })
  }
}

function parse(rawArguments: readonly string[], definitions: ArgsDef): Record<string, unknown> {
  try {
    return parseArgs([...rawArguments], definitions)
  } catch (error) {
    // citty's own complaints (a required argument is missing) are usage errors; their class is not exported.
    if (error instanceof Error && error.name === 'CLIError') {
      throw new Failure('usage', { message: Bun.stripANSI(error.message) })
    }
    throw error
  }
}

async function renderHelp(node: Leaf | Group, path: string): Promise<string> {
  if (!('commands' in node)) return renderLeafHelp(path, node)
  const abouts = Object.entries(node.commands).map(async ([name, load]) => [name, (await load()).about] as const)
  const group = renderGroupHelp(path, node.about, await Promise.all(abouts))
  return node.otherwise ? `${group}\n${renderLeafHelp(path, await node.otherwise())}` : group
}
