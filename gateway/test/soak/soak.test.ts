import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { entryEnv } from '../support/gateway.ts'
import { postgresMissing } from '../support/postgres.ts'

// The short form of each campaign; `npm run soak` runs the long one. A campaign that fails exits with 1. Two
// of them have a file of their own, `changes.test.ts`, because tests of one file run one after the other.
// Each takes up to half a minute on two idle processors; a busy machine gets several times that.
it.each(['memory', 'disconnects', 'traffic'])(
  'the campaign %s passes in its short form',
  async (name) => {
    const program = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--short'], { env: entryEnv })
    expect(stdout).toMatch(/growth .*: \d/)
  },
  180_000,
)

it.skipIf(postgresMissing !== undefined)(
  'the campaign ledger passes in its short form',
  async () => {
    const program = fileURLToPath(new URL('./ledger.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--short'], { env: entryEnv })
    expect(stdout).toMatch(/postgres, 25000 rows: \d/)
  },
  180_000,
)
