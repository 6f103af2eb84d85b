/**
 * Writes the reference pages of the handbook from the code: commands, settings, errors, events and the configuration of
 * each policy kind. `bun test/support/handbook-reference.ts` writes the files; a test compares them.
 */

import type { ArgDef } from 'citty'
import { z } from 'zod'
import { type Command, descriptionOf, shownArguments, subCommandsOf } from '../../cli/command/command.ts'
import { examplesOf } from '../../cli/command/examples.ts'
import { gatehouse } from '../../cli/main.ts'
import { recordingTerminal } from '../../cli/testing/terminal.ts'
import { environmentName, flagName, secretSettings, settingNames, settingsSchema } from '../../src/config.ts'
import { describedEventSchema } from '../../src/events/details.ts'
import { failures } from '../../src/failure.ts'
import { policyKinds } from '../../src/policies/kinds/index.ts'

export const handbookFolder = new URL('../../src/handbook/', import.meta.url)

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
const row = (...cells: string[]): string => `| ${cells.map(cell).join(' | ')} |`.replaceAll('|  |', '| |')
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n')

/** Each page that is written whole, by its path in the handbook. */
export async function referencePages(): Promise<Record<string, string>> {
  return {
    'reference/commands.md': await commandsPage(),
    'reference/settings.md': settingsPage(),
    'reference/errors.md': errorsPage(),
    'reference/events.md': eventsPage(),
  }
}

const written = 'This page is written from the code.'

async function commandsPage(): Promise<string> {
  const sections: string[] = []
  const walk = async (command: Command, path: string): Promise<void> => {
    const children = await subCommandsOf(command)
    for (const [name, child] of children) await walk(child, `${path} ${name}`)
    if (children.length === 0) sections.push(await section(path, command))
  }
  await walk(gatehouse(recordingTerminal()), 'gatehouse')
  return `# Commands

${written} \`gatehouse COMMAND --help\` says the same in a terminal.

Data goes to standard output, everything else to standard error. Every command that reads has \`--json\`. The exit code is 0
for done, 1 for failed, 2 for wrong usage. Servers (\`up\`, \`control-plane\`, \`gateway\`) take every setting as a flag: see
[settings](settings.md). Operator commands take \`--api-url\`, \`--config\`, \`--profile\` and \`--region\`: see [people](../people.md).
\`gatehouse completion bash\` prints a script that completes commands and options; zsh, fish and powershell work too.

${sections.join('\n\n')}
`
}

const common = new Set(['api-url', 'config', 'profile', 'region', 'json'])
const settingFlags = new Set(settingNames.map((name) => flagName(name).slice(2)))

/** A flag as it is written. */
function spelling(name: string, flag: ArgDef): string {
  const alias = 'alias' in flag && typeof flag.alias === 'string' ? `-${flag.alias}, ` : ''
  const hint = flag.type === 'enum' ? flag.options?.join('|') : flag.valueHint
  return `${alias}--${name}${flag.type === 'boolean' ? '' : ` ${hint ?? 'VALUE'}`}`
}

async function section(path: string, command: Command): Promise<string> {
  const args = await shownArguments(command)
  const isServer = 'drain-seconds' in args
  const shown = Object.entries(args).filter(([name]) => !common.has(name) && !(isServer && settingFlags.has(name)))
  const positionals = shown.filter(([, { type }]) => type === 'positional').map(([name]) => name.toUpperCase())
  const rows = shown.map(([name, definition]) => [
    definition.type === 'positional' ? `\`${name.toUpperCase()}\`` : `\`${spelling(name, definition)}\``,
    `${definition.description ?? ''}${definition.required && definition.type !== 'positional' ? ' (required)' : ''}`,
  ])
  const list = rows.length === 0 ? '' : `\n\n${table(['argument', 'meaning'], rows)}`
  const examples = examplesOf(path.replace(/^gatehouse /, '')).map((example) => `gatehouse ${example}`)
  const shownExamples = `\n\n\`\`\`sh\n${examples.join('\n')}\n\`\`\``
  return `## \`${[path, ...positionals].join(' ')}\`\n\n${await descriptionOf(command)}.${list}${shownExamples}`
}

function settingsPage(): string {
  const defaults = settingsSchema.parse({})
  const rows = settingNames.map((name) => [
    `\`${environmentName(name)}\``,
    secretSettings.has(name) ? 'none' : `\`${flagName(name)}\``,
    defaults[name] === undefined ? '' : `\`${defaults[name]}\``,
    settingsSchema.shape[name].description ?? '',
  ])
  return `# Settings

${written} \`gatehouse config explain\` shows each setting, its value and where it came from. How they combine is in
[operations](../operations.md). Settings without a flag are secrets: every user of a host can read a command line.

${table(['environment', 'flag', 'default', 'meaning'], rows)}
`
}

function errorsPage(): string {
  const rows = Object.entries(failures).map(([code, { status, type, message }]) => [
    `\`${code}\``,
    String(status),
    `\`${type}\``,
    message,
  ])
  return `# Errors

${written} The form of an error and the rules for repeating a request are in [HTTP conventions](http.md). Programs branch
on status, type and code. The message is for people and may change; here is the usual one.

Codes of the command line and between gateways and the control plane are in the table too.

${table(['code', 'status', 'type', 'message'], rows)}
`
}

interface JsonSchema {
  $ref?: string
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  items?: JsonSchema
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  description?: string
  default?: unknown
  properties?: Record<string, JsonSchema>
  additionalProperties?: JsonSchema | boolean
  required?: string[]
  $defs?: Record<string, JsonSchema>
}

function typeOf(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return schema.$ref.replace(/^.*\//, '')
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives !== undefined) return alternatives.map(typeOf).join(' or ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(String).join(', ')
  if (schema.type === 'array') return schema.items ? `list of ${typeOf(schema.items)}` : 'list'
  if (schema.properties !== undefined) return `{${Object.keys(schema.properties).join(', ')}}`
  return [schema.type ?? 'any'].flat().join(' or ')
}

const shared = ['event_attribution', 'event_cost_attribution', 'details', 'event_type']

function eventsPage(): string {
  const described: JsonSchema = z.toJSONSchema(z.object({ events: z.array(describedEventSchema) })) as JsonSchema
  const definitions = described.$defs ?? {}
  const groups = Object.entries(definitions).filter(([, { properties }]) => properties?.event_type !== undefined)
  const [, any] = groups[0] ?? []
  const fields = Object.entries(any?.properties ?? {}).filter(([name]) => !shared.includes(name))
  const list = (properties: Record<string, JsonSchema> = {}) =>
    table(
      ['field', 'type', 'meaning'],
      Object.entries(properties).map(([name, schema]) => [`\`${name}\``, typeOf(schema), schema.description ?? '']),
    )
  const sections = groups.map(([name, { properties = {} }]) => {
    const types = properties.event_type?.enum ?? [properties.event_type?.const]
    const details = properties.details?.properties
    return `### ${name}\n\n${types.map((type) => `\`${type}\``).join(', ')}\n\n${list(details)}`
  })
  const parts = ['EventAttribution', 'EventCostAttribution', 'PolicyResult'].filter((name) => definitions[name])
  return `# Events

${written} [Events and audit](../events-and-audit.md) says how to read, export and verify them. An event is shown as it was
written, by whatever version wrote it.

## Fields of every event

${list(Object.fromEntries(fields))}

An event may also have \`event_attribution\`, \`event_cost_attribution\` and \`details\`.

${parts.map((name) => `### ${name}\n\n${list(definitions[name]?.properties)}`).join('\n\n')}

## Types, and their details

${sections.join('\n\n')}
`
}

/** The table of a policy kind's configuration. */
export function configTable(kind: string): string {
  const { config } = policyKinds.get(kind) ?? {}
  if (config === undefined) throw new Error(`There is no policy kind ${kind}`)
  const schema = z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  return table(
    ['member', 'type', 'default', 'meaning'],
    Object.entries(schema.properties ?? {}).map(([name, member]) => [
      `\`${name}\``,
      typeOf(member),
      schema.required?.includes(name)
        ? 'required'
        : member.default === undefined
          ? ''
          : `\`${JSON.stringify(member.default)}\``,
      member.description ?? '',
    ]),
  )
}

/** A page with each table of a configuration filled in. */
export const withConfigTables = (page: string): string =>
  page.replace(
    /<!-- config ([\w-]+) -->\n[\s\S]*?<!-- end -->/g,
    (_, kind: string) => `<!-- config ${kind} -->\n\n${configTable(kind)}\n\n<!-- end -->`,
  )

if (import.meta.main) {
  for (const [path, text] of Object.entries(await referencePages()))
    await Bun.write(new URL(path, handbookFolder), text)
  for (const kind of policyKinds.keys()) {
    const file = new URL(`policies/${kind}.md`, handbookFolder)
    await Bun.write(file, withConfigTables(await Bun.file(file).text()))
  }
}
