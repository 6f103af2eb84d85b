/**
 * The help of a command: citty's usage, its options in groups, and examples. Settings and the options that say where
 * the control plane is stand apart from a command's own options.
 */
import { type ArgsDef, type CommandDef, type CommandMeta, renderUsage, type SubCommandsDef } from 'citty'
import { flagName, flagSettings } from '../../src/config.ts'
import { showsColour } from '../terminal/colour.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { examplesOf } from './examples.ts'

export const connectionFlagNames = ['api-url', 'config', 'profile', 'region'] as const

/** Which settings stand together in the help of what serves. */
const settingGroups: readonly (readonly [title: string, names: RegExp])[] = [
  ['ADDRESSES', /_listen$|^(base|gateway|console|api|peer)_url$|^gateway_workers$/],
  ['DATA AND EVENTS', /^(data$|environment$|checkpoint_|events?_|state_|ledger_|outbox_|export_|sink_|master_key)/],
  ['SIGN-IN AND OAUTH', /^(session_|break_glass_|oauth_)/],
  ['REQUESTS', /^(drain|max_staleness|usage_wait|body|upload|batch|memory|answer|stream_hold|capture_prompt|webhook)_/],
  ['PROVIDERS AND CACHE', /^(connect|first_byte|idle|total|plain_http|path|retry|circuit|cache)_/],
  ['MCP', /^mcp_/],
  ['REALTIME', /^realtime_/],
  ['ESCALATIONS, ALERTS AND CHECKS', /^(escalation|alert|doctor|verify)_/],
  ['LOGS AND TRACES', /^(otlp|trace|log)_/],
]

const groupOfSetting = new Map(
  flagSettings.map((name) => [
    flagName(name).slice(2),
    settingGroups.find(([, names]) => names.test(name))?.[0] ?? 'OTHER SETTINGS',
  ]),
)

function groupOf(flag: string, args: ArgsDef): string {
  const connects = 'profile' in args && connectionFlagNames.some((name) => name === flag)
  if (connects) return 'CONNECTION'
  return 'drain-seconds' in args ? (groupOfSetting.get(flag) ?? 'OPTIONS') : 'OPTIONS'
}

const groupTitles = ['OPTIONS', ...settingGroups.map(([title]) => title), 'OTHER SETTINGS', 'CONNECTION']

/** Which commands stand together in the help of the executable. */
const commandGroups: readonly (readonly [title: string, names: readonly string[]])[] = [
  ['SERVE', ['up', 'control-plane', 'gateway']],
  ['CALLERS', ['token', 'connect', 'workload-identity', 'oauth-client']],
  ['MODELS AND TOOLS', ['provider', 'model', 'cache', 'mcp-server', 'connection']],
  [
    'RULES AND LIMITS',
    ['policy', 'escalation', 'budget', 'consumer-group', 'access-policy', 'dimension', 'managed-settings'],
  ],
  ['PEOPLE', ['user', 'team', 'identity-provider', 'scim-token', 'access-review', 'auth']],
  ['WATCH', ['events', 'usage', 'top', 'logs', 'doctor', 'alert', 'alert-channel', 'sink']],
]

const groupOfCommand = new Map(commandGroups.flatMap(([title, names]) => names.map((name) => [name, title] as const)))
const otherCommands = 'INSTALL AND KEEP'

/** The help of the executable: its commands in groups, and how to go on. */
async function commandsText(meta: CommandMeta, subCommands: SubCommandsDef): Promise<string[]> {
  const all = await sectionOf({ meta, subCommands }, 'COMMANDS')
  const usage = all.before.map((line) => line.replace(Object.keys(subCommands).join('|'), 'COMMAND'))
  const groups = Object.groupBy(Object.entries(subCommands), ([name]) => groupOfCommand.get(name) ?? otherCommands)
  for (const title of [...commandGroups.map(([name]) => name), otherCommands]) {
    const part = await sectionOf({ meta, subCommands: Object.fromEntries(groups[title] ?? []) }, 'COMMANDS')
    usage.push(all.heading.replace('COMMANDS', title), ...part.within.slice(0, -1))
  }
  return [...usage, ...all.within.slice(-1)]
}

/** A section of citty's usage: what stands before its heading, the heading, and what follows. */
async function sectionOf(command: CommandDef, title: string) {
  const lines = (await renderUsage(command)).split('\n')
  const found = lines.findIndex((line) => Bun.stripANSI(line) === title)
  const at = found < 0 ? lines.length : found
  return { before: lines.slice(0, at), heading: lines[at] ?? title, within: lines.slice(at + 1) }
}

/** An option that is longer than this stands on a line of its own, so that it does not push the others to the right. */
const widestOption = 40

/** The lines of citty's options in columns of readable width. */
function optionLines(lines: readonly string[]): string[] {
  const options = lines.map((line) => /^ *(\S.*?) {4}(.*)$/.exec(line) ?? [])
  const lengths = options.map(([, option = '']) => Bun.stringWidth(option)).filter((length) => length <= widestOption)
  const width = Math.max(0, ...lengths)
  return lines.flatMap((line, index) => {
    const [, option, description] = options[index] ?? []
    if (option === undefined || description === undefined) return [line]
    const missing = width - Bun.stringWidth(option)
    if (missing >= 0) return [`  ${' '.repeat(missing)}${option}    ${description}`]
    return [`  ${option}`, `  ${' '.repeat(width)}    ${description}`]
  })
}

/** Text beside an option is no narrower than this; where there is less room it goes on under the option. */
const narrowestText = 24

/** A line as lines of this width at most. What goes on stands under the text that began beside an option. */
function wrapped(line: string, width: number): string[] {
  if (Bun.stringWidth(line) <= width) return [line]
  const [, beside = '', text = line] = /^( *\S.*? {4}| {4,})(\S.*)$/.exec(line) ?? []
  const column = Bun.stringWidth(beside)
  const indent = column === 0 || width - column < narrowestText ? 4 : column
  const [first = '', ...others] = Bun.wrapAnsi(text, Math.max(1, width - indent)).split('\n')
  return [beside + first, ...others.map((other) => ' '.repeat(indent) + other)]
}

/** What is shown of a command. */
interface Shown {
  meta: CommandMeta
  args: ArgsDef
  subCommands?: SubCommandsDef | undefined
}

/**
 * The help, under the name that the command was called by, as wide as the terminal, and without colour where no person
 * reads it.
 */
export async function helpText(shown: Shown, path: string, terminal: Terminal): Promise<string> {
  const { args, subCommands } = shown
  const meta = { ...shown.meta, name: path }
  const [executable = '', ...words] = path.split(' ')
  const { before, heading } = await sectionOf(
    { meta, args, ...(subCommands === undefined ? {} : { subCommands }) },
    'OPTIONS',
  )
  const lines = subCommands === undefined || words.length > 0 ? before : await commandsText(meta, subCommands)
  const groups = Object.groupBy(Object.entries(args), ([name, { type }]) =>
    type === 'positional' ? 'ARGUMENTS' : groupOf(name, args),
  )
  for (const group of groupTitles) {
    const options = groups[group]
    if (options === undefined) continue
    const part = await sectionOf({ meta, args: Object.fromEntries(options) }, 'OPTIONS')
    lines.push(heading.replace('OPTIONS', group), ...optionLines(part.within))
  }
  const { width } = terminal
  const fitting =
    width === undefined
      ? lines
      : lines
          .join('\n')
          .split('\n')
          .flatMap((line) => wrapped(line, width))
  // Examples are copied, so they stay whole.
  const examples = examplesOf(words.join(' ')).map((example) => `  ${executable} ${example}`)
  if (examples.length > 0) fitting.push(heading.replace('OPTIONS', 'EXAMPLES'), '', ...examples, '')
  const text = `${fitting.join('\n')}\n`.replaceAll(/ +$/gm, '')
  return showsColour(terminal) ? text : Bun.stripANSI(text)
}
