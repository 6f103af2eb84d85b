/** What `bun run migrations` generates from: the tables of the ledger (store/README.md rule 5). */
import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'sqlite',
  schema: 'src/store/schema/ledger',
  out: 'src/store/migrations/ledger',
})
