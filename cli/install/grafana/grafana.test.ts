import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parser } from '@prometheus-io/lezer-promql'
import { z } from 'zod'
import { writeFiles } from '../write-files.ts'
import { grafanaFiles } from './grafana.ts'

const dashboardSchema = z.object({
  uid: z.string(),
  title: z.string(),
  panels: z.array(
    z.object({
      id: z.number(),
      title: z.string(),
      targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).min(1),
    }),
  ),
})
const rulesSchema = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.object({
          expr: z.string(),
          record: z.string().optional(),
          alert: z.string().optional(),
          annotations: z.object({ summary: z.string() }).optional(),
        }),
      ),
    }),
  ),
})

const files = new Map(grafanaFiles().map(([name, content]) => [name, content]))
const dashboards = [...files].flatMap(([name, content]) =>
  name.endsWith('.json') ? [dashboardSchema.parse(JSON.parse(content))] : [],
)
const { groups } = rulesSchema.parse(Bun.YAML.parse(files.get('rules/gatehouse.yaml') ?? ''))
const allRules = groups.flatMap(({ rules }) => rules)
const recorded = new Set(allRules.flatMap(({ record }) => record ?? []))

interface Query {
  where: string
  /** Variables of Grafana are filled in, as it does. */
  expression: string
  /** What its legend or summary takes from labels. */
  shown: string
}
const queries: Query[] = [
  ...dashboards.flatMap(({ uid, panels }) =>
    panels.flatMap(({ title, targets }) =>
      targets.map(({ expr, legendFormat }) => ({
        where: `${uid}: ${title}`,
        expression: expr.replaceAll('$__rate_interval', '5m'),
        shown: legendFormat,
      })),
    ),
  ),
  ...allRules.map(({ expr, alert, record, annotations }) => ({
    where: alert ?? record ?? '',
    expression: expr,
    shown: annotations?.summary ?? '',
  })),
]

/** Metrics that the handbook lists, with their labels; a test of telemetry holds that the product has exactly these. */
async function documented(): Promise<Map<string, ReadonlySet<string>>> {
  const text = await Bun.file(new URL('../../../src/handbook/reference/metrics.md', import.meta.url)).text()
  const known = new Map<string, ReadonlySet<string>>()
  // Prometheus adds these to what it reads; `worker` is added where a gateway has several.
  const common = ['job', 'instance', 'worker']
  for (const [, name = '', type, labels = ''] of text.matchAll(/^\| `(gatehouse_\w+)` \| (\w+) \|([^|]*)\|/gm)) {
    const own = [...labels.matchAll(/`(\w+)`/g)].map(([, label = '']) => label)
    if (type === 'histogram') known.set(`${name}_bucket`, new Set([...own, 'le', ...common]))
    else known.set(name, new Set([...own, ...common]))
  }
  return known
}

/** The names and labels that an expression uses. Throws for one that is no PromQL. */
function usedIn({ where, expression, shown }: Query): { metrics: string[]; labels: string[] } {
  const metrics: string[] = []
  const labels = [...shown.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label = '']) => label)
  parser.parse(expression).iterate({
    enter({ name, type, from, to }) {
      if (type.isError) throw new Error(`${where} is no PromQL at ${from}: ${expression}`)
      const text = expression.slice(from, to)
      if (name === 'VectorSelector') metrics.push(/^[\w:]+/.exec(text)?.[0] ?? '')
      if (name === 'LabelName') labels.push(text)
    },
  })
  return { metrics, labels }
}

test('every query is PromQL over metrics and labels that exist', async () => {
  const known = await documented()
  expect(known.size).toBeGreaterThan(40)
  for (const query of queries) {
    const { metrics, labels } = usedIn(query)
    expect([query.where, metrics.length > 0]).toEqual([query.where, true])
    for (const metric of metrics.filter((metric) => !recorded.has(metric))) {
      const has = known.get(metric)
      expect([query.where, metric, has !== undefined]).toEqual([query.where, metric, true])
      expect([query.where, labels.filter((label) => has?.has(label) !== true)]).toEqual([query.where, []])
    }
  }
})

test('refuses what is no PromQL, and a metric that does not exist', async () => {
  const query = { where: 'x', shown: '' }
  expect(() => usedIn({ ...query, expression: 'sum(rate(a[5m])' })).toThrow('no PromQL')
  const { metrics } = usedIn({ ...query, expression: 'sum by (b) (gatehouse_unheard_of_total{c="d"}) > 0' })
  expect([metrics, (await documented()).has('gatehouse_unheard_of_total')]).toEqual([
    ['gatehouse_unheard_of_total'],
    false,
  ])
})

test('every metric of sinks, alerts and verifications stands in a panel and a rule, as far as it is for both', async () => {
  const watched = [...(await documented()).keys()].filter((name) => /^gatehouse_(sink|alert|alerts|verify)_/.test(name))
  expect(watched.length).toBeGreaterThan(9)
  const drawn = new Set(
    dashboards
      .flatMap(({ panels }) => panels.flatMap(({ targets }) => targets))
      .flatMap(({ expr }) => expr.match(/gatehouse_\w+/g) ?? []),
  )
  const ruled = new Set(allRules.flatMap(({ expr }) => expr.match(/gatehouse_\w+/g) ?? []))
  // When it was is for a rule; how many records wait and what is open are for people who look.
  const panelless = ['gatehouse_verify_examined_timestamp_seconds']
  const ruleless = ['gatehouse_sink_lag_records', 'gatehouse_alerts_open']
  expect(watched.filter((name) => !drawn.has(name))).toEqual(panelless)
  expect(watched.filter((name) => !ruled.has(name)).toSorted()).toEqual(ruleless.toSorted())
})

test('dashboards cover traffic, latency, spend, limits, the fleet, the event log and where it goes, and names are unique', () => {
  expect(dashboards.map(({ uid }) => uid)).toEqual([
    'gatehouse-traffic',
    'gatehouse-latency',
    'gatehouse-spend',
    'gatehouse-fleet',
    'gatehouse-record',
  ])
  for (const { panels } of dashboards) {
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
    expect(panels.map(({ id }) => id)).toEqual(panels.map((_, index) => index + 1))
  }
  const names = allRules.map(({ alert, record }) => alert ?? record)
  expect(new Set(names).size).toBe(names.length)
})

const promtool = Bun.which('promtool')

test.skipIf(promtool === null)('promtool accepts the rules', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rules-'))
  try {
    writeFiles(directory, grafanaFiles())
    const path = join(directory, 'rules/gatehouse.yaml')
    const checked = Bun.spawn([promtool ?? '', 'check', 'rules', path], { stdout: 'pipe', stderr: 'pipe' })
    const said = await Promise.all([new Response(checked.stdout).text(), new Response(checked.stderr).text()])
    expect([await checked.exited, said.join('')]).toEqual([0, expect.stringContaining('SUCCESS')])
  } finally {
    rmSync(directory, { recursive: true })
  }
})
