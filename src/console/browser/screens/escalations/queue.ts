/** The queue as a reviewer sees it: equal requests as one, and what the reviewer may do with them. */
import type { Escalation } from '../../api/routes.ts'
import { caller, hasPermission, isCaller } from '../../session.ts'

/** Requests that wait and are equal: the same policy stopped the same request, of one token or of several. */
export interface Group {
  /** The newest, which stands for all of them. */
  first: Escalation
  all: readonly Escalation[]
}

export const isOpen = ({ status }: Escalation): boolean => status === 'queued' || status === 'claimed'

export const isEqual = (one: Escalation, other: Escalation): boolean =>
  one.id === other.id ||
  (isOpen(one) && isOpen(other) && one.policy.id === other.policy.id && one.request.digest === other.request.digest)

/** In the order of the list, each group where its newest stands. */
export function grouped(list: readonly Escalation[]): Group[] {
  const groups: { first: Escalation; all: Escalation[] }[] = []
  for (const one of list) {
    const known = groups.find(({ first }) => isEqual(first, one))
    if (known === undefined) groups.push({ first: one, all: [one] })
    else known.all.push(one)
  }
  return groups
}

const isClaimedByAnother = ({ claimed_by }: Escalation): boolean => claimed_by !== null && !isCaller(claimed_by)

/** Nobody decides about a request of their own. */
const isOwn = ({ user_id }: Escalation): boolean => user_id !== null && user_id === caller.value?.user?.id

/** Why the reader may not decide, in words; null where they may. */
export function whyNotDecided(one: Escalation): string | null {
  if (!isOpen(one)) return 'It is decided.'
  if (!hasPermission('escalations:resolve')) return 'You may read requests that wait, but not decide about them.'
  if (isOwn(one)) return 'You asked for this: another person decides.'
  if (isClaimedByAnother(one)) return `${one.claimed_by_name ?? 'Another reviewer'} is reviewing it.`
  return null
}

export const mayDecide = (one: Escalation): boolean => whyNotDecided(one) === null

/** Whether the reader may give back to the queue what another reviewer has claimed, or they themselves. */
export const mayRelease = (one: Escalation): boolean =>
  one.status === 'claimed' &&
  hasPermission('escalations:resolve') &&
  (isCaller(one.claimed_by) || (caller.value?.roles.some((role) => role === 'owner' || role === 'admin') ?? false))

/** The reader's own decisions that can still be undone. */
export const undoable = (list: readonly Escalation[]): Escalation[] =>
  list.filter(({ status, resolved_by }) => status === 'deciding' && isCaller(resolved_by))
