/** A notice, before it is written in the form of its channel's kind. */
import { timestamp } from '../../lib/clock.ts'
import type { FiringRow } from '../stored-alert.ts'

export interface Notice {
  /** The idempotency key: the same however often it is sent. */
  id: string
  kind: 'fired' | 'resolved' | 'test'
  alert: { id: string; name: string; condition: string }
  firing: Pick<FiringRow, 'id' | 'subject' | 'value' | 'threshold' | 'severity' | 'about'> & {
    firedAt: string
    resolvedAt: string | null
  }
  /** Where people see more. */
  link: string
}

const words = { fired: '', resolved: 'Resolved: ', test: 'Test: ' } as const

/** On one line. */
export const titleOf = ({ kind, alert, firing: { severity } }: Notice): string =>
  `${words[kind]}${alert.name} (${severity})`

/** For those who read no structure. */
export const textOf = (notice: Notice): string => [titleOf(notice), notice.firing.about, notice.link].join('\n\n')

export const firingOf = ({ id, subject, value, threshold, severity, about, firedAt, resolvedAt }: FiringRow) => ({
  ...{ id, subject, value, threshold, severity, about, firedAt: timestamp(firedAt) },
  resolvedAt: resolvedAt === null ? null : timestamp(resolvedAt),
})

/** What the test button sends. */
export const testNotice = (id: string, now: number, link: string): Notice => ({
  id,
  kind: 'test',
  alert: { id, name: 'Gatehouse reaches this channel', condition: 'test' },
  firing: {
    ...{ id, subject: 'test', value: 0, threshold: 0, severity: 'info', resolvedAt: null },
    about: 'Somebody asked for this notice to see whether it arrives. Nothing is wrong.',
    firedAt: timestamp(now),
  },
  link,
})

/** As long as a receiver takes. */
export const clipped = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest - 1).toWellFormed()}…`
