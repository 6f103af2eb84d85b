/** Colours for states, where a person reads and NO_COLOR (no-color.org) is not set. */
import { styleText } from 'node:util'
import type { Terminal } from './terminal.ts'

const words = {
  green: ['active', 'allow', 'ok', 'works', 'approved', 'in use', 'ready', 'info'],
  yellow: [
    ...['queued', 'claimed', 'pending', 'held', 'skipped', 'warn', 'draining', 'redact', 'rewrite', 'escalate'],
    ...['approval_required', 'rate_limit', 'expiring', 'rotation_due', 'budget_near_exhaustion'],
    ...['request_near_exhaustion', 'inactive', 'deactivated', 'disabled'],
  ],
  red: [
    ...['block', 'deny', 'error', 'fail', 'fails', 'fatal', 'revoked', 'emergency_revoked', 'expired', 'rotated'],
    ...['budget_exhausted', 'request_exhausted', 'circuit open', 'lost', 'withdrawn'],
  ],
} as const

const colourOf = new Map<string, keyof typeof words>([
  ...words.green.map((word) => [word, 'green'] as const),
  ...words.yellow.map((word) => [word, 'yellow'] as const),
  ...words.red.map((word) => [word, 'red'] as const),
])

type Screen = Pick<Terminal, 'interactive' | 'environment'>

export const showsColour = ({ interactive, environment }: Screen): boolean => interactive && !environment.NO_COLOR

/** A state in its colour; blanks around it stay. Other words are left as they are. */
export function coloured(state: string, screen: Screen): string {
  const colour = colourOf.get(state.trim().toLowerCase())
  return colour === undefined || !showsColour(screen) ? state : styleText(colour, state, { validateStream: false })
}
