/** What `bun run migrations` generates from: the tables of the state (store/README.md rule 5). */
import { defineConfig } from 'drizzle-kit'

export default defineConfig({
  dialect: 'sqlite',
  schema: 'src/store/schema/state',
  out: 'src/store/migrations/state',
})
