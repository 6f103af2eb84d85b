/**
 * `install systemd|kubernetes|compose` prints what runs the executable where it is to run, `install clickhouse` the tables of
 * its events; `install helm|grafana|keys` writes files.
 */
import { defineCommand } from 'citty'
import type { Terminal } from '../terminal/terminal.ts'

export const install = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description:
        'What runs and watches Gatehouse elsewhere: systemd, Kubernetes, Helm, compose, Grafana; the keys and tables it needs',
    },
    subCommands: {
      systemd: async () => (await import('./systemd.ts')).systemd(terminal),
      kubernetes: async () => (await import('./kubernetes.ts')).kubernetes(terminal),
      compose: async () => (await import('./compose.ts')).compose(terminal),
      helm: async () => (await import('./helm/helm.ts')).helm(terminal),
      grafana: async () => (await import('./grafana/grafana.ts')).grafana(terminal),
      clickhouse: async () => (await import('./clickhouse.ts')).clickhouse(terminal),
      keys: async () => (await import('./keys.ts')).keys(terminal),
    },
  })
