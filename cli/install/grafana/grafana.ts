/** `install grafana DIR`: dashboards of Grafana, and rules of Prometheus with alerts. */
import { defineCommand } from 'citty'
import type { Terminal } from '../../terminal/terminal.ts'
import { writeFiles } from '../write-files.ts'
import { dashboards } from './dashboards.ts'
import { dashboardJson } from './panel.ts'
import { rules } from './rules.ts'

export const grafana = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Write dashboards of Grafana and alert rules of Prometheus into a directory' },
    args: {
      directory: {
        type: 'positional',
        required: true,
        description: 'Made where it is missing; nothing in it is overwritten',
        valueHint: 'DIR',
      },
    },
    async run({ args: { directory } }) {
      writeFiles(directory, grafanaFiles())
      await terminal.write(`${directory}\n`)
      terminal.note('Import dashboards/*.json into Grafana, and name rules/gatehouse.yaml in rule_files of Prometheus')
    },
  })

export const grafanaFiles = (): [name: string, content: string, mode: number][] => [
  ...dashboards.map((dashboard): [string, string, number] => [
    `dashboards/${dashboard.uid}.json`,
    `${JSON.stringify(dashboardJson(dashboard), null, 2)}\n`,
    0o644,
  ]),
  ['rules/gatehouse.yaml', `${Bun.YAML.stringify(rules, null, 2)}\n`, 0o644],
]
