import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { environmentName, settingNames } from '../../src/config.ts'
import { clickhouseSchema } from '../../src/events/clickhouse/schema.ts'
import { version } from '../../src/version.ts'
import { runCommandLine } from '../command/command.ts'
import { recordingTerminal } from '../testing/terminal.ts'
import { install } from './install.ts'
import { keyFiles } from './keys.ts'

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-install-'))
afterAll(() => rmSync(directory, { recursive: true }))

async function printed(...rawArguments: string[]): Promise<string> {
  const terminal = recordingTerminal()
  await runCommandLine(install(terminal), rawArguments, terminal)
  return terminal.written()
}

test('prints the table of ClickHouse as a statement that is ended', async () => {
  expect(await printed('clickhouse')).toBe(`${clickhouseSchema};\n`)
})

const verifier = Bun.which('systemd-analyze')

test.skipIf(verifier === null)('systemd accepts the unit of every role', async () => {
  for (const role of ['up', 'control-plane', 'gateway']) {
    const unit = join(directory, `gatehouse-${role}.service`)
    await Bun.write(unit, await printed('systemd', '--role', role, '--executable', '/bin/true'))
    const verified = Bun.spawn([verifier ?? '', 'verify', unit], { stdout: 'pipe', stderr: 'pipe' })
    const said = await Promise.all([new Response(verified.stdout).text(), new Response(verified.stderr).text()])
    expect([role, await verified.exited, said.join('')]).toEqual([role, 0, ''])
  }
})

test('prints a systemd unit that waits for running requests and reads its secrets from a file', async () => {
  const unit = await printed('systemd', '--role', 'control-plane', '--drain-seconds', '120')
  expect(unit).toContain('ExecStart=/usr/local/bin/gatehouse control-plane\n')
  expect(unit).toContain('TimeoutStopSec=130\n')
  expect(unit).toContain('EnvironmentFile=/etc/gatehouse/control-plane.env\n')
  expect(unit).not.toMatch(/^Environment=.*(TOKEN|KEY)/m)
})

const container = z.object({
  name: z.string(),
  image: z.string(),
  restartPolicy: z.string().optional(),
  args: z.array(z.string()).optional(),
  env: z.array(z.object({ name: z.string(), value: z.string().optional() })),
  startupProbe: z.object({ httpGet: z.object({ path: z.string() }) }).optional(),
  livenessProbe: z.object({ httpGet: z.object({ path: z.string() }) }).optional(),
  resources: z.object({ limits: z.record(z.string(), z.string()) }).optional(),
})
const deployment = z.object({
  kind: z.literal('Deployment'),
  spec: z.object({
    template: z.object({
      spec: z.object({
        initContainers: z.tuple([container]),
        containers: z.array(container),
      }),
    }),
  }),
})

test('prints a manifest that starts the application when its gateway is ready', async () => {
  const yaml = await printed('kubernetes', '--name', 'shop', '--api-url', 'https://gate.example.com/')
  const { initContainers, containers } = deployment.parse(Bun.YAML.parse(yaml)).spec.template.spec
  const [gateway] = initContainers
  expect(gateway).toMatchObject({ restartPolicy: 'Always', args: ['gateway'] })
  expect(gateway.startupProbe?.httpGet.path).toBe('/readyz')
  expect(gateway.livenessProbe?.httpGet.path).toBe('/healthz')
  expect(gateway.resources?.limits.memory).toBeDefined()
  expect(gateway.env.find(({ name }) => name === 'SERVICE_API_URL')?.value).toBe('https://gate.example.com')
  expect(gateway.env.find(({ name }) => name === 'SERVICE_API_TOKEN')?.value).toBeUndefined()
  expect(containers.map(({ name }) => name)).toEqual(['application'])
})

test.each(['123', 'true', 'null'])('a Deployment may be called %s', async (name) => {
  const manifest = Bun.YAML.parse(await printed('kubernetes', '--name', name, '--image', '1.5'))
  expect(manifest).toMatchObject({
    metadata: { name, labels: { 'app.kubernetes.io/name': name } },
    spec: {
      selector: { matchLabels: { 'app.kubernetes.io/name': name } },
      template: { metadata: { labels: { 'app.kubernetes.io/name': name } } },
    },
  })
  expect(deployment.parse(manifest).spec.template.spec.initContainers[0].image).toBe('1.5')
})

const service = z.object({
  image: z.string(),
  command: z.array(z.string()).optional(),
  network_mode: z.string().optional(),
  ports: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
})
const composition = z.object({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) })

test('prints a compose file with one network, open to the host only, and with every volume and key that it names', async () => {
  const { services, volumes } = composition.parse(Bun.YAML.parse(await printed('compose')))
  const { host, ...others } = services
  expect(host?.ports?.every((port) => port.startsWith('127.0.0.1:'))).toBe(true)
  expect(Object.keys(others).toSorted()).toEqual(['control-plane', 'gateway', 'ledger', 'state'])
  for (const each of Object.values(others)) expect(each.network_mode).toBe('service:host')
  const mounted = Object.values(others).flatMap((each) => each.volumes.map((volume) => volume.split(':')[0] ?? ''))
  expect(mounted.filter((name) => !name.startsWith('./')).toSorted()).toEqual(Object.keys(volumes).toSorted())
  const files = keyFiles().map(([name]) => `./keys/${name}`)
  expect(mounted.filter((name) => name.startsWith('./') && !files.includes(name))).toEqual([])
  const given = Object.values(others).flatMap(({ environment }) => Object.keys(environment))
  const ours = given.filter((name) => name.startsWith('SERVICE_'))
  expect(ours.filter((name) => !settingNames.some((setting) => environmentName(setting) === name))).toEqual([])
  expect(ours.filter((name) => /TOKEN$|MASTER_KEY$/.test(name))).toEqual([])
})

test('writes keys that only their owner can read, and overwrites no file', async () => {
  const keys = join(directory, 'keys')
  expect(await printed('keys', keys)).toBe(`${keys}\n`)
  const modes = keyFiles().map(([name]) => [name, statSync(join(keys, name)).mode & 0o777])
  expect(modes).toEqual([
    ['state-public.pem', 0o644],
    ['ledger-public.pem', 0o644],
    ['state-signing.pem', 0o600],
    ['control-plane.env', 0o600],
  ])
  const before = await Bun.file(join(keys, 'control-plane.env')).text()
  await expect(printed('keys', keys)).rejects.toThrow('is there already')
  expect(await Bun.file(join(keys, 'control-plane.env')).text()).toBe(before)
})

test('refuses a value that would make a wrong file, and names its flag', async () => {
  const wrong: [string[], string][] = [
    [['systemd', '--role', 'sidecar'], '--role'],
    [['systemd', '--executable', 'gatehouse\nExecStartPre=/bin/sh'], '--executable'],
    [['systemd', '--drain-seconds', 'soon'], '--drain-seconds'],
    [['kubernetes', '--name', 'Shop: x'], '--name'],
    [['kubernetes', '--image', 'a b'], '--image'],
    [['compose', '--image', ''], '--image'],
    [['systemd', '--executable', '/opt/x%n'], 'letters, digits and'],
    [['kubernetes', '--image', '-x'], '--image'],
    [['compose', '--image', 'A_B'], '--image'],
    [['kubernetes', '--api-url', 'http://gate.example.com'], '--api-url'],
    [['kubernetes', '--api-url', 'https://x"y'], 'names no host'],
    [['kubernetes', '--api-url', 'https://x"}$(A)'], 'names no host'],
    [['kubernetes', '--api-url', 'https://$HOME'], 'names no host'],
    [['kubernetes', '--api-url', 'https://gate.example.com/behind'], '--api-url'],
    [['kubernetes', '--api-url', 'https://user:word@gate.example.com'], '--api-url'],
    [['keys', ''], 'The directory ""'],
    [['keys', '/dev/null/keys'], 'The directory "/dev/null/keys"'],
  ]
  for (const [rawArguments, flag] of wrong) await expect(printed(...rawArguments)).rejects.toThrow(flag)
})

test('the compose file and the manifest name the image that the README and the Dockerfile say how to build', async () => {
  const image = `gatehouse:${version}`
  for (const file of ['README.md', 'Dockerfile']) {
    const text = await Bun.file(join(import.meta.dir, '../..', file)).text()
    const [, built] = /docker build -t (\S+) \./.exec(text) ?? []
    const [, started] = /docker run .*-v gatehouse:\/data (\S+)$/m.exec(text) ?? []
    expect([file, built, started]).toEqual([file, image, image])
  }
  for (const what of ['compose', 'kubernetes']) {
    const images = [...(await printed(what)).matchAll(/image: "(gatehouse[^"]*)"/g)].map(([, name]) => name)
    expect([what, ...new Set(images)]).toEqual([what, image])
  }
})
