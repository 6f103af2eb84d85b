/**
 * A primary that was restored from an older copy has tokens in it as they were before they were revoked, rotated or
 * narrowed (protocols section 4, rule 1). Two know better, and by each such tokens are revoked again:
 *
 *   the ledger   which was not restored with it, has the records of tokens that ended
 *   lanes        have denied tokens at versions that the restored state has not given them
 *
 * A token that was only narrowed ends too where a lane tells of it: what it was narrowed to is lost, and nobody must have
 * more than that. Each is an event, `token.revoked` with the reason `state.restored`.
 */
import { controlPlaneEvent } from '../events/control-plane-event.ts'
import { versionArgument } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import { newStateVersion } from '../store/rows.ts'
import { anonymous } from '../tokens/principal.ts'
import type { FleetOptions } from './control.ts'

const pageRows = 1000
const restorer = { ...anonymous, name: 'system:restore' }

type Options = Pick<FleetOptions, 'state' | 'ledger' | 'clock' | 'newId' | 'recorder'>

interface Revived {
  id: string
  hash: string
  event_team_id: string | null
}

/** Revokes again what the ledger says has ended; resolves to how many those were. */
export async function revokeByLedger(options: Options): Promise<number> {
  const { state, ledger, clock } = options
  let revoked = 0
  for (let after = ''; ; ) {
    const page = await ledger.read<{ id: string }>(
      `select id from tokens where id > ? and (revoked_at is not null or rotated_at <= ?) order by id limit ${pageRows}`,
      [after, clock.now()],
    )
    const last = page.at(-1)
    if (last === undefined) return revoked
    after = last.id
    const revived = await state.read<Revived>(
      `select id, hash, event_team_id from tokens where id in (select value from json_each(?)) and deleted = 0
        and revoked_at is null and (rotated_at is null or rotated_at > ?)`,
      [JSON.stringify(page.map(({ id }) => id)), clock.now()],
    )
    for (const token of revived) if (await revokeAgain(options, token, 'ledger')) revoked += 1
  }
}

/** Revokes again what a lane has denied at versions that the state has not given; resolves to how many those were. */
export async function revokeByDenials(
  options: Options,
  lane: string,
  denials: readonly { version: number; hash: string }[],
): Promise<number> {
  const revived = await options.state.read<Revived>(
    `select distinct t.id, t.hash, t.event_team_id from tokens t join json_each(?) denial on t.hash = value ->> 'hash'
      where t.deleted = 0 and t.revoked_at is null and t.version < value ->> 'version'`,
    [JSON.stringify(denials)],
  )
  let revoked = 0
  for (const token of revived) if (await revokeAgain(options, token, lane)) revoked += 1
  return revoked
}

/** False where somebody else was faster. */
async function revokeAgain(
  { clock, newId, recorder }: Options,
  { id, hash, event_team_id: teamId }: Revived,
  knownBy: string,
): Promise<boolean> {
  const event = controlPlaneEvent({
    type: 'token.revoked',
    reason: 'state.restored',
    principal: restorer,
    requestId: 'restore',
    tokenId: id,
    teamId,
    details: { token_id: id, known_by: knownBy },
    configVersion: 0,
    clock,
    newId,
  })
  const revocation = JSON.stringify({ by: restorer.name, emergency: false, explanation: null })
  const now = clock.now()
  try {
    await recorder().change({
      event,
      guard: { sql: 'select revoked_at is null from tokens where id = ?', args: [id] },
      state: [
        {
          sql: `update tokens set revoked_at = ?, version = ${newStateVersion} where id = ?`,
          args: [now, id],
        },
      ],
      ledger: [
        {
          sql: `update tokens set revoked_at = coalesce(revoked_at, ?), revocation = coalesce(revocation, ?),
            version = max(version, ?) where id = ?`,
          args: [now, revocation, versionArgument, id],
        },
      ],
      deny: [hash],
    })
    return true
  } catch (error) {
    if (error instanceof Failure && error.code === 'conflict') return false
    throw error
  }
}
