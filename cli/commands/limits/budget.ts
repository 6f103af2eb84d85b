import { defineCommand } from 'citty'
import { budgetResource, scopeLists } from '../../../src/usage/api/budget-resource.ts'
import { connect, pageFlags, pageQuery, readPage, recordFlags, showPage } from '../../command/record.ts'
import { idArgument, recordPath, resourceCommands } from '../../command/resource-commands.ts'
import type { Terminal } from '../../terminal/terminal.ts'

export const budget = (terminal: Terminal) =>
  defineCommand({
    meta: { description: budgetResource.about },
    subCommands: {
      ...resourceCommands(budgetResource, terminal, {
        references: { 'scope.id': { byField: 'scope.kind', lists: scopeLists } },
      }),
      values: () => values(terminal),
    },
  })

const values = (terminal: Terminal) =>
  defineCommand({
    meta: { description: 'List what each value of a dimension spent of its budget, those that spent most first' },
    args: {
      ...idArgument,
      value: { type: 'string', description: 'Only this value, also where it spent nothing' },
      ...pageFlags,
      ...recordFlags,
    },
    async run({ args }) {
      const { id, value, json } = args
      const path = `${recordPath(budgetResource, id)}/values`
      const request = { path, query: { value, ...pageQuery(args) } }
      const page = await readPage(connect(args, terminal), request, { of: 'values', all: args.all })
      await showPage(page, { of: 'values', fields: ['value', 'spend', 'remaining', 'resets_at'], json, terminal })
    },
  })
