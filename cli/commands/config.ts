/** `config explain`: every setting, its value, and where that came from. Secrets are named, never shown. */
import { defineCommand } from 'citty'
import { environmentName, flagName, secretSettings, settingNames } from '../../src/config.ts'
import { readSettings, settingFlags } from '../command/settings.ts'
import { columns } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const config = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show the settings of the servers' },
    subCommands: { explain: async () => explain(terminal) },
  })

const explain = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Show each setting, its value and where it came from' },
    args: { ...settingFlags(), json: { type: 'boolean', description: 'Print JSON' } },
    async run({ args }) {
      const { settings, origins, written } = readSettings(args, terminal.environment)
      const rows = settingNames.map((name) => ({
        name,
        value: secretSettings.has(name) && settings[name] !== undefined ? '(secret)' : (settings[name] ?? null),
        origin: origins[name],
        written: written[name] ?? null,
        environment: environmentName(name),
        flag: secretSettings.has(name) ? null : flagName(name),
      }))
      if (args.json) return terminal.write(`${JSON.stringify({ settings: rows }, null, 2)}\n`)
      const lines = rows.map((row) => [row.name, String(row.value ?? '-'), row.origin, row.written ?? ''])
      return terminal.write(columns([['SETTING', 'VALUE', 'FROM', 'WRITTEN IN'], ...lines]))
    },
  })
