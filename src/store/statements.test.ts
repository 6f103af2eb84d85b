import { Database as Sqlite } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { ledgerMigrations, stateMigrations } from './schema/migrate.ts'
import { splitStatements } from './statements.ts'

test('statements end at semicolons that are neither quoted, nor in comments, nor of a trigger', () => {
  expect(
    splitStatements(`-- one; two
      insert into a values ('x;''y', "b;c") /* ; */;
      create trigger t after insert on a begin
        update a set b = case when 1 then 2 end; delete from c;
      end;
      ; select 1`),
  ).toEqual([
    `-- one; two
      insert into a values ('x;''y', "b;c") /* ; */`,
    `create trigger t after insert on a begin
        update a set b = case when 1 then 2 end; delete from c;
      end`,
    'select 1',
  ])
  expect(splitStatements('-- nothing yet;\n')).toEqual([])
})

test('every migration makes the same when it is cut into statements', () => {
  for (const migrations of [stateMigrations, ledgerMigrations]) {
    const [whole, cut] = [new Sqlite(':memory:'), new Sqlite(':memory:')]
    for (const { sql } of migrations) {
      const statements = splitStatements(sql)
      // bun:sqlite refuses a text without a statement.
      if (statements.length > 0) whole.run(sql)
      for (const statement of statements) cut.run(statement)
    }
    const schema = 'select type, name, sql from sqlite_schema order by type, name'
    expect(cut.query(schema).all()).toEqual(whole.query(schema).all())
  }
})
