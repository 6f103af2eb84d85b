/**
 * Help texts. citty's own are not used: they are coloured where nobody asked, name the script instead of the command
 * as it was called, and cannot leave a flag out. Nothing here is coloured, so NO_COLOR holds by itself.
 */
import type { ArgDef, ArgsDef } from 'citty'
import { columns } from '../terminal/table.ts'

export function renderGroupHelp(path: string, about: string, commands: readonly (readonly [string, string])[]): string {
  const rows = commands.map(([name, text]) => [`  ${name}`, text])
  return `${about}\n\nUsage: ${path} COMMAND\n\n${columns(rows)}\n${path} COMMAND --help says more about one.\n`
}

export function renderLeafHelp(path: string, { about, args }: { about: string; args: ArgsDef }): string {
  const entries = Object.entries(args)
  const positionals = entries.filter(([, definition]) => definition.type === 'positional')
  const flags = entries.filter(([, definition]) => definition.type !== 'positional')
  const needed = flags.filter(([, definition]) => definition.required).map(([name, flag]) => spelling(name, flag))
  const usage = [path, ...positionals.map(([name]) => name.toUpperCase()), ...needed, '[OPTIONS]'].join(' ')
  const rows = [
    ...positionals.map(([name, definition]) => [`  ${name.toUpperCase()}`, definition.description ?? '']),
    ...flags.map(([name, flag]) => [
      `  ${spelling(name, flag)}`,
      `${flag.description ?? ''}${flag.required ? ' (required)' : ''}`,
    ]),
  ]
  return `${about}\n\nUsage: ${usage}\n\n${columns(rows)}`
}

export function spelling(name: string, flag: ArgDef): string {
  const alias = 'alias' in flag && typeof flag.alias === 'string' ? `-${flag.alias}, ` : ''
  return `${alias}--${name}${flag.type === 'boolean' ? '' : ` ${flag.valueHint ?? 'VALUE'}`}`
}
