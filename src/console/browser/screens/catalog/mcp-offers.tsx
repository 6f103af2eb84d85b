/**
 * What an MCP server offers now and nobody has approved, each beside the definition that was approved of it, for a
 * person to compare. What cannot be seen in a definition is written out: it is there to be read by models.
 */
import type { z } from 'zod'
import type { offerSchema } from '../../../../mcp/offers/offer-record.ts'
import { queryValue, setQuery } from '../../address.ts'
import { everyPage } from '../../api/every-page.ts'
import { request } from '../../api/request.ts'
import { humanize, number } from '../../formats.ts'
import { Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { countWaiting, waitingServers } from '../../parts/frame/waiting.tsx'
import { ErrorNote, Show, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { showInvisible, UserText } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { RecordName } from '../record-name.tsx'
import { changedWords, placeWords, readable } from './changed-words.ts'
import { type ListedRecord, text } from './records.tsx'

type Offer = z.infer<typeof offerSchema>

const path = (serverId: string): string => `/v1/catalog/mcp-servers/${encodeURIComponent(serverId)}/offers`

/** Opens what a server offers without approval, and says in the list whether there is any. */
export function HeldOffersButton({ serverId }: { serverId: string }) {
  const servers = waitingServers.value
  const waiting = servers?.find(({ id }) => id === serverId)
  const state = waiting === undefined ? 'none' : number(waiting.changed + waiting.added)
  return (
    <button type="button" onClick={() => setQuery({ held: serverId }, { keepPage: true })}>
      {servers === null ? 'Held offers' : `Held offers: ${state}`}
    </button>
  )
}

/** The dialog of the server that the address names. */
export function HeldOffers({ again }: { again(): void }) {
  const id = queryValue('held')
  return id === null ? null : <Held key={id} serverId={id} again={again} />
}

function Held({ serverId, again }: { serverId: string; again(): void }) {
  const found = useLoaded(`offers ${serverId}`, async (signal) => {
    const [server, offers] = await Promise.all([
      request<ListedRecord>('GET', `/v1/catalog/mcp-servers/${encodeURIComponent(serverId)}`, { signal }),
      allOffers(serverId, signal),
    ])
    return { server, offers }
  })
  const close = () => setQuery({ held: null }, { keepPage: true })
  const server = found.value?.server
  const done = () => {
    found.reload()
    countWaiting()
  }
  return (
    <Dialog
      title={`What ${server === undefined ? 'a server' : text(server, 'name')} offers without approval`}
      broad
      close={close}
    >
      <Show of={found} rows={4}>
        {({ offers }) => <Compare {...{ serverId, offers, done }} />}
      </Show>
      <div class="row between">
        {server === undefined ? (
          <span />
        ) : (
          <Quarantine
            server={server}
            done={() => {
              again()
              close()
            }}
          />
        )}
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

function Compare({ serverId, offers, done }: { serverId: string; offers: readonly Offer[]; done(): void }) {
  const newest = new Map(offers.map((offer) => [`${offer.kind} ${offer.name}`, offer]))
  const groups = Map.groupBy(
    offers.filter(({ status }) => status === 'held'),
    (offer) => {
      if (newest.get(`${offer.kind} ${offer.name}`) !== offer) return 'former'
      return offer.dismissed_at === null ? 'waiting' : 'dismissed'
    },
  )
  const shown = (group: 'waiting' | 'dismissed' | 'former') =>
    groups.get(group)?.map((offer) => {
      const approved = offers.find(({ digest }) => digest === offer.approved_digest)
      return <Compared key={offer.digest} {...{ serverId, offer, approved, done }} waits={group === 'waiting'} />
    })
  const [waiting, dismissed, former] = [shown('waiting'), shown('dismissed'), shown('former')]
  return (
    <div class="stack">
      {waiting ?? <p>{dismissed ? 'Nothing waits for a decision.' : 'Nothing is held: every offer is approved.'}</p>}
      {dismissed && (
        <details>
          <summary>Dismissed definitions, which are held</summary>
          {dismissed}
        </details>
      )}
      {former && (
        <details>
          <summary>Earlier definitions, which are held if it offers them again</summary>
          {former}
        </details>
      )}
    </div>
  )
}

/** Takes the server out of use at every gateway, or back. */
function Quarantine({ server, done }: { server: ListedRecord; done(): void }) {
  const quarantined = server.quarantined !== true
  const { run, busy, refusal } = useAction(
    () =>
      request('PATCH', `/v1/catalog/mcp-servers/${encodeURIComponent(server.id)}`, {
        body: { quarantined },
        headers: { 'if-match': `"${server.version}"` },
      }),
    () => {
      showToast(quarantined ? 'Under quarantine: every call of it is refused' : 'In use again')
      done()
    },
  )
  if (!hasPermission('catalog:write')) return <span />
  return (
    <div class="stack close">
      <button type="button" class={quarantined ? 'danger' : ''} disabled={busy} onClick={run}>
        {quarantined ? 'Put under quarantine' : 'End the quarantine'}
      </button>
      {refusal !== null && <ErrorNote refusal={refusal} />}
    </div>
  )
}

interface ComparedProps {
  serverId: string
  offer: Offer
  approved: Offer | undefined
  /** Whether nobody has decided about it. */
  waits: boolean
  done(): void
}

function Compared({ serverId, offer, approved, waits, done }: ComparedProps) {
  const { kind, name, misfit, dismissed_at: dismissedAt, dismissed_by: dismissedBy } = offer
  return (
    <section class="card stack close" aria-label={`${humanize(kind)} ${showInvisible(name)}`}>
      <h3>
        {humanize(kind)} <UserText>{name}</UserText>
      </h3>
      {offer.changes !== null && <Changes of={offer.changes} />}
      <details open>
        <summary>Whole definitions</summary>
        <div class="pair">
          <Definition title="Approved" of={approved} none="No definition of this name was approved." />
          <Definition title="Offered" of={offer} />
        </div>
      </details>
      {misfit !== null && <p class="note warn">It cannot be approved: {misfit}</p>}
      {dismissedAt !== null && (
        <p class="small quiet">
          Dismissed <Time at={dismissedAt} /> by <Person name={dismissedBy ?? ''} />
        </p>
      )}
      {hasPermission('catalog:write') && (
        <div class="row end">
          {waits && (
            <Decision {...{ serverId, offer, done }} to="dismiss" label="Dismiss" said="Dismissed: it stays held" />
          )}
          {misfit === null && (
            <Decision
              {...{ serverId, offer, done }}
              to="approve"
              label="Approve this definition"
              said="Approved"
              primary
            />
          )}
        </div>
      )}
    </section>
  )
}

interface DecisionProps extends Pick<ComparedProps, 'serverId' | 'offer' | 'done'> {
  to: 'approve' | 'dismiss'
  label: string
  /** What is said when it is done. */
  said: string
  primary?: boolean
}

function Decision({ serverId, offer: { kind, name, digest }, to, label, said, primary = false, done }: DecisionProps) {
  const { run, busy, refusal } = useAction(
    () => request('POST', `${path(serverId)}/${to}`, { body: { kind, name, digest } }),
    () => {
      showToast(said)
      done()
    },
  )
  return (
    <>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <button type="button" class={primary ? 'primary' : ''} disabled={busy} onClick={run}>
        {label}
      </button>
    </>
  )
}

/** Who decided, from `user:ID` or `token:ID`. */
function Person({ name }: { name: string }) {
  const [kind, id] = name.split(':')
  if (kind === 'user') return <RecordName kind="users" id={id} />
  return kind === 'token' ? <RecordName kind="tokens" id={id} /> : <span>{name}</span>
}

/** What differs from the approved definition, a member at a time. */
function Changes({ of }: { of: NonNullable<Offer['changes']> }) {
  return (
    <div class="stack close">
      <h4>Changes</h4>
      <dl>
        {of.map(({ path: place, before, after }) => (
          <div key={place}>
            <dt>
              <UserText>{placeWords(place)}</UserText>
            </dt>
            <dd>
              <Difference before={before} after={after} />
            </dd>
          </div>
        ))}
      </dl>
    </div>
  )
}

/** What was taken out and what came in, within the words that stayed. */
function Difference({ before, after }: { before: string | null; after: string | null }) {
  const [old, now] = [before, after].map((json) => (json === null ? '' : readable(json)))
  const { start, before: removed, after: added, end } = changedWords(old ?? '', now ?? '')
  return (
    <p class="said">
      {showInvisible(start)}
      {removed !== '' && <del>{showInvisible(removed)}</del>}
      {added !== '' && <ins>{showInvisible(added)}</ins>}
      {showInvisible(end)}
    </p>
  )
}

function Definition({ title, of, none = '' }: { title: string; of: Offer | undefined; none?: string }) {
  return (
    <div class="stack close">
      <h4>{title}</h4>
      {of === undefined ? (
        <p class="quiet">{none}</p>
      ) : (
        <pre>{showInvisible(JSON.stringify(of.definition, null, 2))}</pre>
      )}
    </div>
  )
}

/** All that is kept of a server. */
const allOffers = (serverId: string, signal: AbortSignal): Promise<Offer[]> =>
  everyPage(
    (query) => request<{ offers: Offer[]; next_cursor: string | null }>('GET', path(serverId), { query, signal }),
    ({ offers }) => offers,
  )
