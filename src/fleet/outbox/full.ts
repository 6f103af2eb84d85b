/** The failure that callers get when a gateway cannot record an event. */
import { Failure } from '../../failure.ts'
import { hostFaultAdvice, hostFaultOf } from '../../lib/log/host-fault.ts'

/** The outbox has reached its limit, or the disk is nearly full. */
export const outboxFull = (reason: 'limit' | 'disk', cause?: unknown): Failure =>
  new Failure('event_outbox_full', {
    message: `This gateway cannot record more events at the moment. ${reasons[reason]}`,
    cause,
  })

const reasons = {
  limit: 'Those that it keeps wait for the control plane, which does not take them',
  disk: hostFaultAdvice.disk_full,
}

/** A full disk is `event_outbox_full`; any other write error is `dependency_unavailable`. */
export function asOutboxFull(error: unknown): Failure {
  if (error instanceof Failure) return error
  const code = error instanceof Error && 'code' in error ? error.code : null
  const fault = hostFaultOf(error)
  if (fault === 'disk_full' || code === 'EFBIG') return outboxFull('disk', error)
  return new Failure(fault ?? 'dependency_unavailable', { cause: error })
}
