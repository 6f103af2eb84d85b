/**
 * The help of a command: citty's usage, its options in groups, and examples. Settings and the options that say where
 * the control plane is stand apart from a command's own options.
 */
import { type ArgsDef, type CommandDef, type CommandMeta, renderUsage } from 'citty'
import { flagName, flagSettings } from '../../src/config.ts'
import { showsColour } from '../terminal/colour.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { examplesOf } from './examples.ts'

export const connectionFlagNames = ['api-url', 'config', 'profile', 'region'] as const

/** Which settings stand together in the help of what serves. */
const settingGroups: readonly (readonly [title: string, names: RegExp])[] = [
  ['ADDRESSES', /_listen$|^(base|gateway|console|api|peer)_url$|^gateway_workers$/],
  ['DATA AND EVENTS', /^(data$|environment$|checkpoint_|event_|state_|ledger_|outbox_|export_)/],
  ['SIGN-IN AND OAUTH', /^(session_|break_glass_|oauth_)/],
  ['REQUESTS', /^(drain|max_staleness|usage_wait|body|upload|batch|memory|answer|stream_hold|capture_prompt|webhook)_/],
  ['PROVIDERS AND CACHE', /^(connect|first_byte|idle|total|plain_http|path|retry|circuit|cache)_/],
  ['MCP', /^mcp_/],
  ['REALTIME', /^realtime_/],
  ['ESCALATIONS AND ALERTS', /^(escalation|alert)_/],
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

/** What is shown of a command. */
interface Shown {
  meta: CommandMeta
  args: ArgsDef
  subCommands?: CommandDef['subCommands']
}

/** The help, under the name that the command was called by, and without colour where no person reads it. */
export async function helpText(shown: Shown, path: string, terminal: Terminal): Promise<string> {
  const { args, subCommands } = shown
  const meta = { ...shown.meta, name: path }
  const whole = { meta, args, ...(subCommands === undefined ? {} : { subCommands }) }
  const usage = (await renderUsage(whole)).split('\n')
  const title = usage.findIndex((line) => Bun.stripANSI(line) === 'OPTIONS')
  const heading = (text: string) => (usage[title] ?? '').replace('OPTIONS', text)
  const lines = title < 0 ? usage : usage.slice(0, title)
  const groups = Object.groupBy(Object.entries(args), ([name, { type }]) =>
    type === 'positional' ? 'ARGUMENTS' : groupOf(name, args),
  )
  for (const group of groupTitles) {
    const options = groups[group]
    if (options === undefined) continue
    const part = (await renderUsage({ meta, args: Object.fromEntries(options) })).split('\n')
    const from = part.findIndex((line) => Bun.stripANSI(line) === 'OPTIONS')
    lines.push(heading(group), ...part.slice(from + 1))
  }
  // A command has options or commands of its own, not both.
  const [executable = '', ...words] = path.split(' ')
  const examples = examplesOf(words.join(' ')).map((example) => `  ${executable} ${example}`)
  if (examples.length > 0) lines.push(...(title < 0 ? ['', 'EXAMPLES'] : [heading('EXAMPLES')]), '', ...examples, '')
  const text = `${lines.join('\n')}\n`.replaceAll(/ +$/gm, '')
  return showsColour(terminal) ? text : Bun.stripANSI(text)
}
