/**
 * What an MCP server offers now and nobody has approved, each beside the definition that was approved of it, for a
 * person to compare. What cannot be seen in a definition is written out: it is there to be read by models.
 */
import { useState } from 'preact/hooks'
import type { z } from 'zod'
import type { offerSchema } from '../../../../mcp/offers/offer-routes.ts'
import { everyPage } from '../../api/every-page.ts'
import { request } from '../../api/request.ts'
import { humanize } from '../../formats.ts'
import { Dialog, useAction } from '../../parts/frame/dialog.tsx'
import { showToast } from '../../parts/frame/toast.tsx'
import { ErrorNote, Show, useLoaded } from '../../parts/loaded.tsx'
import { showInvisible, UserText } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { changedWords, readable } from './changed-words.ts'
import type { ListedRecord } from './records.tsx'

type Offer = z.infer<typeof offerSchema>

const path = ({ id }: ListedRecord): string => `/v1/catalog/mcp-servers/${encodeURIComponent(id)}/offers`

interface OffersProps {
  server: ListedRecord
  name: string
  /** Reads the list of servers anew. */
  again(): void
}

export function McpOffers({ server, name, again }: OffersProps) {
  const [open, setOpen] = useState(false)
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Held offers
      </button>
      {open && <Held {...{ server, name, again }} close={() => setOpen(false)} />}
    </>
  )
}

function Held({ server, name, again, close }: OffersProps & { close(): void }) {
  const found = useLoaded(`offers ${server.id}`, (signal) => allOffers(server, signal))
  return (
    <Dialog title={`What ${name} offers without approval`} broad close={close}>
      <Show of={found} rows={4}>
        {(offers) => {
          const held = offers.flatMap((offer, index) => {
            const approved = offers.findIndex(({ digest }) => digest === offer.approved_digest)
            const compared = { server, offer, approved: offers[approved], done: found.reload }
            return offer.status === 'held' ? [{ compared, later: index > approved }] : []
          })
          const [waiting, former] = [true, false].map((which) => held.filter(({ later }) => later === which))
          return (
            <div class="stack">
              {waiting?.length === 0 && <p>Every offer is approved.</p>}
              {waiting?.map(({ compared }) => (
                <Compared key={compared.offer.digest} {...compared} />
              ))}
              {former !== undefined && former.length > 0 && (
                <details>
                  <summary>Earlier definitions, which are held if it offers them again</summary>
                  {former.map(({ compared }) => (
                    <Compared key={compared.offer.digest} {...compared} />
                  ))}
                </details>
              )}
            </div>
          )
        }}
      </Show>
      <div class="row between">
        <Quarantine
          server={server}
          done={() => {
            again()
            close()
          }}
        />
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
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
  server: ListedRecord
  offer: Offer
  approved: Offer | undefined
  done(): void
}

function Compared({ server, offer, approved, done }: ComparedProps) {
  const { kind, name, digest, misfit } = offer
  const { run, busy, refusal } = useAction(
    () => request('POST', `${path(server)}/approve`, { body: { kind, name, digest } }),
    () => {
      showToast('Approved')
      done()
    },
  )
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
      {refusal !== null && <ErrorNote refusal={refusal} />}
      {misfit === null && hasPermission('catalog:write') && (
        <div class="row end">
          <button type="button" class="primary" disabled={busy} onClick={run}>
            Approve this definition
          </button>
        </div>
      )}
    </section>
  )
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
              <UserText>{place}</UserText>
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
const allOffers = (server: ListedRecord, signal: AbortSignal): Promise<Offer[]> =>
  everyPage(
    (query) => request<{ offers: Offer[]; next_cursor: string | null }>('GET', path(server), { query, signal }),
    ({ offers }) => offers,
  )
