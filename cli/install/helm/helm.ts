/** `install helm DIR`: the chart, as its files lie in `chart/`. The build puts their text into the executable. */
import { defineCommand } from 'citty'
import type { Terminal } from '../../terminal/terminal.ts'
import { writeFiles } from '../write-files.ts'
import chart from './chart/Chart.yaml' with { type: 'text' }
import helpers from './chart/templates/_helpers.tpl' with { type: 'text' }
import controlPlane from './chart/templates/control-plane.yaml' with { type: 'text' }
import disruption from './chart/templates/disruption.yaml' with { type: 'text' }
import gateway from './chart/templates/gateway.yaml' with { type: 'text' }
import ingress from './chart/templates/ingress.yaml' with { type: 'text' }
import notes from './chart/templates/NOTES.txt' with { type: 'text' }
import networkPolicy from './chart/templates/network-policy.yaml' with { type: 'text' }
import serviceMonitor from './chart/templates/service-monitor.yaml' with { type: 'text' }
import sidecar from './chart/templates/sidecar.yaml' with { type: 'text' }
import sqld from './chart/templates/sqld.yaml' with { type: 'text' }
import schema from './chart/values.schema.json' with { type: 'text' }
import values from './chart/values.yaml' with { type: 'text' }

/** Each file of the chart by its path in it. */
export const chartFiles: Readonly<Record<string, string>> = {
  'Chart.yaml': chart,
  'values.yaml': values,
  // The type of an imported `.json` file is that of its content, but the attribute makes it its text.
  'values.schema.json': String(schema),
  'templates/NOTES.txt': notes,
  'templates/_helpers.tpl': helpers,
  'templates/control-plane.yaml': controlPlane,
  'templates/disruption.yaml': disruption,
  'templates/gateway.yaml': gateway,
  'templates/ingress.yaml': ingress,
  'templates/network-policy.yaml': networkPolicy,
  'templates/service-monitor.yaml': serviceMonitor,
  'templates/sidecar.yaml': sidecar,
  'templates/sqld.yaml': sqld,
}

export const helm = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Write the Helm chart: control planes, gateways, sidecars and, where wanted, sqld' },
    args: {
      directory: {
        type: 'positional',
        required: true,
        description: 'Made where it is missing; nothing in it is overwritten',
        valueHint: 'DIR',
      },
    },
    async run({ args: { directory } }) {
      writeFiles(
        directory,
        Object.entries(chartFiles).map(([name, content]) => [name, content, 0o644] as const),
      )
      await terminal.write(`${directory}\n`)
      terminal.note(`Look at ${directory}/values.yaml; then helm install NAME ${directory} -f YOUR-VALUES.yaml`)
    },
  })
