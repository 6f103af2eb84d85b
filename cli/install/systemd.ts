/** A systemd unit for one process of the product, with every right taken away that it does not need. */
import { defineCommand } from 'citty'
import { Failure } from '../../src/failure.ts'
import type { Terminal } from '../terminal/terminal.ts'

const roles = {
  up: {
    what: 'control plane and gateway',
    environment: 'SERVICE_MASTER_KEY, OPENAI_API_KEY and the like, as you need',
  },
  'control-plane': {
    what: 'control plane',
    environment: 'SERVICE_BASE_URL, SERVICE_MASTER_KEY, SERVICE_STATE_URL and the like',
  },
  gateway: { what: 'gateway beside an application', environment: 'SERVICE_API_URL and SERVICE_API_TOKEN' },
} as const
type Role = keyof typeof roles

export const systemd = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'Print a hardened unit: gatehouse install systemd > /etc/systemd/system/gatehouse.service' },
    args: {
      role: {
        type: 'enum',
        options: ['gateway', 'control-plane', 'up'],
        default: 'gateway',
        description: 'What the unit runs; up runs both',
      },
      executable: {
        type: 'string',
        default: '/usr/local/bin/gatehouse',
        description: 'Where the executable lies, outside of home directories',
        valueHint: 'PATH',
      },
      'drain-seconds': {
        type: 'string',
        default: '30',
        description: 'The value of SERVICE_DRAIN_SECONDS',
        valueHint: 'N',
      },
    },
    async run({ args }) {
      const { role, executable } = args
      const drainSeconds = Number(args['drain-seconds'])
      if (!/^\/[\w./+@-]+$/.test(executable)) {
        throw new Failure('usage', {
          message:
            '--executable is an absolute path of letters, digits and . _ / + @ -, for systemd reads others as its own',
        })
      }
      if (!Number.isInteger(drainSeconds) || drainSeconds < 0 || drainSeconds > 3600) {
        throw new Failure('usage', { message: '--drain-seconds is a whole number from 0 to 3600' })
      }
      await terminal.write(systemdUnit({ role, executable, drainSeconds }))
    },
  })

/**
 * The unit's text. Not among the restrictions, for these would break it: MemoryDenyWriteExecute (the runtime compiles
 * while it runs) and ProcSubset=pid (the boot id shows that the host crashed).
 */
export const systemdUnit = ({
  role,
  executable,
  drainSeconds,
}: {
  role: Role
  executable: string
  drainSeconds: number
}): string => `# /etc/gatehouse/${role}.env (root, mode 0600) holds ${roles[role].environment}: one NAME=value a line.
[Unit]
Description=Gatehouse: ${roles[role].what}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${executable} ${role}
EnvironmentFile=/etc/gatehouse/${role}.env
Environment=SERVICE_DATA=/var/lib/gatehouse
Environment=SERVICE_DRAIN_SECONDS=${drainSeconds}
Restart=always
RestartSec=1
# Running requests finish; what does not end by itself is killed ten seconds later.
KillMode=mixed
TimeoutStopSec=${drainSeconds + 10}
LimitNOFILE=65536

DynamicUser=yes
StateDirectory=gatehouse
StateDirectoryMode=0700
UMask=0077

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`
