/**
 * The chart as helm renders it. The renderings are in `test/golden/helm`, with the digest of what they were made of, so
 * that they are checked where helm is not installed too. Where it is, it lints the chart and renders it again, and
 * `UPDATE_GOLDEN=1` writes the files anew (`go install helm.sh/helm/v3/cmd/helm@latest`).
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { environmentName, settingNames } from '../../../src/config.ts'
import { version } from '../../../src/version.ts'
import { faultOf, type KubernetesObject, objectsIn } from '../../../test/support/kubernetes-object.ts'
import { sidecarManifest } from '../kubernetes.ts'
import { writeFiles } from '../write-files.ts'
import { chartFiles } from './helm.ts'

const golden = join(import.meta.dir, '../../../test/golden/helm')
const values = { full: join(golden, 'full-values.yaml'), small: join(golden, 'small-values.yaml') }
type Case = keyof typeof values
const cases: readonly Case[] = ['full', 'small']

const digestOf = (of: Case): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify([chartFiles, readFileSync(values[of], 'utf8')])).digest('hex')
const headOf = (of: Case): string => `# Rendered by helm from the chart and ${of}-values.yaml, sha256 ${digestOf(of)}\n`
const rendered = (of: Case): string => readFileSync(join(golden, `${of}.yaml`), 'utf8')

const helm = Bun.which('helm')

function run(...args: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([helm ?? '', ...args])
  if (exitCode !== 0) throw new Error(stderr.toString() + stdout.toString())
  return stdout.toString()
}

test.skipIf(helm === null)('helm lints the chart and renders it as in the golden files', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-chart-'))
  try {
    writeFiles(
      directory,
      Object.entries(chartFiles).map(([name, content]) => [name, content, 0o644] as const),
    )
    for (const of of cases) {
      expect(run('lint', '--strict', directory, '-f', values[of])).toContain('0 chart(s) failed')
      const made = headOf(of) + run('template', 'shop', directory, '-f', values[of], '--kube-version', '1.31.0')
      if (process.env.UPDATE_GOLDEN !== undefined) writeFileSync(join(golden, `${of}.yaml`), made)
      expect(rendered(of)).toBe(made)
    }
    const wrong = [
      [['controlPlane.baseUrl=http://x'], 'does not match pattern'],
      [['controlPlane.baseUrl='], 'Set apiUrl, or controlPlane.baseUrl'],
      [['database.stateUrl='], 'Set database.stateUrl, or sqld.enabled'],
      [['gateway.autoscaling.requestsInFlight=0'], 'minimum'],
    ] as const
    for (const [set, said] of wrong) {
      const flags = set.flatMap((each) => ['--set', each])
      expect(() =>
        run('template', 'shop', directory, '-f', values.small, '--kube-version', '1.31.0', ...flags),
      ).toThrow(said)
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('the renderings are of this chart: otherwise render them again, as the head of this file says', () => {
  for (const of of cases) expect(rendered(of).startsWith(headOf(of))).toBe(true)
})

test('the command writes every file of the chart', () => {
  const present = [...new Bun.Glob('**/*').scanSync(join(import.meta.dir, 'chart'))]
  expect(Object.keys(chartFiles).toSorted()).toEqual(present.toSorted())
  for (const [name, content] of Object.entries(chartFiles)) {
    expect(content).toBe(readFileSync(join(import.meta.dir, 'chart', name), 'utf8'))
  }
})

const objects: Record<Case, KubernetesObject[]> = {
  full: objectsIn(rendered('full')),
  small: objectsIn(rendered('small')),
}

test('every object fits the schema of its kind, and so does the manifest of install kubernetes', () => {
  for (const of of cases) {
    for (const object of objects[of])
      expect([object.kind, object.metadata.name, faultOf(object)]).toEqual([object.kind, object.metadata.name, null])
    const names = objects[of].map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
  }
  const manifest = sidecarManifest({ name: 'shop', image: 'gatehouse:1', apiUrl: 'https://gatehouse.example.com' })
  expect(objectsIn(manifest).map(faultOf)).toEqual([null])
  const [service] = objects.small.filter(({ kind }) => kind === 'Service')
  if (service === undefined) throw new Error('There is no service')
  expect(faultOf({ ...service, spec: { ports: 'none' } })).toContain('ports')
})

test('the whole chart has control planes, gateways, a sidecar, databases and what guards them', () => {
  const found = objects.full.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()
  expect(found).toEqual([
    'Deployment shop',
    'Deployment shop-gateway',
    'HorizontalPodAutoscaler shop-gateway',
    ...['control-plane', 'gateway', 'ledger', 'state'].map((part) => `Ingress shop-${part}`),
    ...['control-plane', 'gateway', 'ledger', 'state'].map((part) => `NetworkPolicy shop-${part}`),
    ...['control-plane', 'gateway'].map((part) => `PodDisruptionBudget shop-${part}`),
    ...['control-plane', 'gateway', 'ledger', 'state'].map((part) => `Service shop-${part}`),
    'ServiceMonitor shop',
    ...['control-plane', 'ledger', 'state'].map((part) => `StatefulSet shop-${part}`),
  ])
})

const podSchema = z.looseObject({
  metadata: z.object({ labels: z.record(z.string(), z.string()) }),
  spec: z.looseObject({
    initContainers: z.array(z.looseObject({ name: z.string(), restartPolicy: z.string() })).optional(),
    containers: z.array(
      z.looseObject({
        image: z.string(),
        ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).optional(),
      }),
    ),
  }),
})
const podOf = ({ spec }: KubernetesObject) => (spec.template === undefined ? null : podSchema.parse(spec.template))

test('services, budgets and policies select the pods that they are named after', () => {
  const pods = new Map(
    objects.full.flatMap((object) => {
      const pod = podOf(object)
      return pod === null ? [] : [[object.metadata.name, pod] as const]
    }),
  )
  const selectorOf = ({ spec }: KubernetesObject) =>
    z
      .record(z.string(), z.string())
      .parse(
        spec.podSelector === undefined
          ? (z.object({ matchLabels: z.unknown() }).safeParse(spec.selector).data?.matchLabels ?? spec.selector)
          : z.object({ matchLabels: z.unknown() }).parse(spec.podSelector).matchLabels,
      )
  const selecting = objects.full.filter(({ kind }) =>
    ['Service', 'PodDisruptionBudget', 'NetworkPolicy'].includes(kind),
  )
  expect(selecting.length).toBe(10)
  for (const object of selecting) {
    const { name } = object.metadata
    const selector = Object.entries(selectorOf(object))
    const selected = [...pods].filter(([, pod]) => selector.every(([key, value]) => pod.metadata.labels[key] === value))
    expect([object.kind, name, selected.map(([each]) => each)]).toEqual([object.kind, name, [name]])
  }
})

test('a sidecar is a native one, and everything of Gatehouse runs the image of this version', () => {
  const sidecar = objects.full.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'shop')
  const container = sidecar === undefined ? undefined : podOf(sidecar)?.spec.initContainers?.[0]
  expect(container).toMatchObject({ name: 'gatehouse', restartPolicy: 'Always', image: `gatehouse:${version}` })
  const images = objects.full.flatMap((object) => podOf(object)?.spec.containers.map(({ image }) => image) ?? [])
  expect(new Set(images)).toEqual(
    new Set([`gatehouse:${version}`, 'shop', 'ghcr.io/tursodatabase/libsql-server:v0.24.32']),
  )
})

test('names only settings and metrics that exist', async () => {
  const known = new Set(settingNames.map(environmentName))
  const text = rendered('full') + Object.values(chartFiles).join('')
  const named = [...new Set([...text.matchAll(/\bSERVICE_[A-Z_]+/g)].map(([name]) => name))]
  expect(named.length).toBeGreaterThan(8)
  expect(named.filter((name) => !known.has(name))).toEqual([])
  const metrics = await Bun.file(new URL('../../../src/handbook/reference/metrics.md', import.meta.url)).text()
  expect(metrics).toContain('| `gatehouse_requests_in_flight` | gauge |')
  expect(rendered('full')).toContain('metric: { name: gatehouse_requests_in_flight }')
})
