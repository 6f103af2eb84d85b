/** A key of a service account for tests, as Google's file of it, and the public key that it is verified with. */
import { generateKeyPairSync } from 'node:crypto'

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })

export const testPublicKey = pair.publicKey

export const testServiceKey = (tokenUrl: string, members: Record<string, unknown> = {}): string =>
  JSON.stringify(
    {
      type: 'service_account',
      project_id: 'my-project',
      private_key_id: 'key-1',
      private_key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }),
      client_email: 'gateway@my-project.iam.gserviceaccount.com',
      token_uri: tokenUrl,
      ...members,
    },
    null,
    2,
  )
