/** `/v1/master-key`: begins a rotation of the master key and says how far it is. The key itself is never shown. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { controlPlaneEvent, versionNow } from '../events/control-plane-event.ts'
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { KeyRotation } from '../store/keys/rotate-master-key.ts'
import type { Database } from '../store/open.ts'

const stateSchema = z.object({
  source: z.enum(['file', 'setting']).describe('Where the master key comes from'),
  rotation: z
    .enum(['none', 'ready', 'running', 'complete'])
    .describe(
      'none: there is no next key. ready: there is one, and nothing uses it yet. running: values are sealed anew. complete: nothing is left under the former key, which is still the setting `master_key`',
    ),
  resealed: z
    .number()
    .int()
    .describe('Values that this control plane has sealed anew in the last rotation, since its start'),
})

interface Dependencies {
  state: Database
  recorder: Recorder
  clock: Clock
  newId: NewId
  keyRotation: KeyRotation
  settings: { master_key?: string | undefined }
  /** Whether the other control planes have the next key of this fingerprint. */
  everyoneHolds(fingerprint: string): Promise<boolean>
}

export function masterKeyRoutes(dependencies: Dependencies) {
  const { state, recorder, clock, newId, keyRotation, settings, everyoneHolds } = dependencies
  const shown = () => {
    const { state: rotation, resealed } = keyRotation.state()
    return { source: settings.master_key === undefined ? ('file' as const) : ('setting' as const), rotation, resealed }
  }
  return new Elysia({ name: 'master key' })
    .use(conventions)
    .get('/v1/master-key', shown, {
      access: 'members:read',
      wholeOrganization: true,
      query: z.strictObject({}),
      response: stateSchema,
      detail: { tags: ['Operation'], summary: 'Says how far a rotation of the master key is' },
    })
    .post(
      '/v1/master-key/rotate',
      async ({ principal, requestId }) => {
        const wasRunning = keyRotation.state().state === 'running'
        await keyRotation.begin(everyoneHolds)
        if (!wasRunning) {
          const event = controlPlaneEvent({
            ...{ type: 'master_key.rotation_begun', principal, requestId, clock, newId, details: {} },
            configVersion: await versionNow(state),
          })
          await recorder.append([event])
        }
        await keyRotation.step()
        return shown()
      },
      {
        failures: [409],
        access: 'members:write',
        wholeOrganization: true,
        body: z.strictObject({}),
        response: stateSchema,
        detail: {
          tags: ['Operation'],
          summary: 'Begins to seal every secret under the next master key, or goes on with it, while all runs',
        },
      },
    )
}
