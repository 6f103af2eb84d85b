/** `doctor`: what is wrong with an installation or, with `--data`, with a gateway on this host, and what to do. */
import { defineCommand } from 'citty'
import type { NamedFinding } from '../../src/doctor/finding.ts'
import { Failure } from '../../src/failure.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { connectionFlags, findConnection } from '../command/profile.ts'
import { readSettings } from '../command/settings.ts'
import { printable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'

const args = {
  ...connectionFlags,
  data: { type: 'string', description: 'Look at the gateway that has this data directory', valueHint: 'DIR' },
  config: {
    type: 'string',
    description: "The profile file; with --data the gateway's settings file",
    valueHint: 'FILE',
  },
  'gateway-listen': {
    type: 'string',
    description: 'With --data: where that gateway listens (default 127.0.0.1:7080)',
    valueHint: 'HOST:PORT',
  },
  json: { type: 'boolean', description: 'Print the findings as JSON' },
} as const

export const doctor = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Find what is wrong and say how to fix it; changes nothing' },
    args,
    async run({ args }) {
      const { examineHost, examineInstallation } = await import('../../src/app/doctor.ts')
      const world = { fetch, clock: systemClock }
      const findings =
        args.data === undefined
          ? await examineInstallation(findConnection(args, terminal), world)
          : await examineHost(readSettings(args, terminal.environment).settings, world)
      const failed = findings.filter(({ level }) => level === 'fail').length
      await terminal.write(
        args.json === true
          ? `${JSON.stringify({ ok: failed === 0, findings })}\n`
          : findings.map((finding) => `${lineOf(finding)}\n`).join(''),
      )
      if (failed > 0) {
        throw new Failure('unhealthy', { message: failed === 1 ? 'One thing is wrong' : `${failed} things are wrong` })
      }
    },
  })

const lineOf = ({ level, what, todo }: NamedFinding): string =>
  printable(`${level.padEnd(4)}  ${what}${todo === undefined ? '' : `  — ${todo}`}`)
