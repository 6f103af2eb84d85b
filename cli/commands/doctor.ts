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
    description: 'The profile file; with --data or --upgrade the settings file',
    valueHint: 'FILE',
  },
  'gateway-listen': {
    type: 'string',
    description: 'With --data: where that gateway listens (default 127.0.0.1:7080)',
    valueHint: 'HOST:PORT',
  },
  upgrade: {
    type: 'boolean',
    description: 'Say what an upgrade to this executable would meet; with --data also in those files',
  },
  json: { type: 'boolean', description: 'Print the findings as JSON' },
} as const

export const doctor = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Find what is wrong and say how to fix it; changes nothing' },
    args,
    async run({ args }) {
      const { examineHost, examineInstallation, examineUpgrade } = await import('../../src/app/doctor.ts')
      const world = { fetch, clock: systemClock }
      const settings = () => readSettings(args, terminal.environment).settings
      const look = async () => {
        if (args.upgrade === true) {
          // Of an upgrade the settings of the control plane are needed too: the file is theirs.
          return await examineUpgrade(settings(), findConnection({ ...args, config: undefined }, terminal), world)
        }
        if (args.data === undefined) return await examineInstallation(findConnection(args, terminal), world)
        return await examineHost(settings(), world)
      }
      const findings = await look()
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
