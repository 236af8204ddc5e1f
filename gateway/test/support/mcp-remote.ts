import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { endAfter } from './cleanup.ts'
import { freePort } from './free-port.ts'
import { browse } from './mcp-browser.ts'
import { packageFile } from './run-program.ts'
import { until } from './wait.ts'

const authorizationUrl = /https?:\/\/\S+[?&]code_challenge=\S+/

/**
 * A client on standard input and output with `mcp-remote` between it and the URL. Where `mcp-remote` asks for
 * a person with a browser, there is one. Rejects when `mcp-remote` gives up.
 */
export async function connectMcpRemote(url: string): Promise<Client> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-mcp-remote-'))
  const port = await freePort()
  const client = new Client({ name: 'tollgate-test', version: '1.0.0' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [
      packageFile('mcp-remote', 'dist/proxy.js'),
      url,
      String(port),
      ...['--host', '127.0.0.1', '--transport', 'http-only'],
    ],
    // Without a PATH it finds no browser of this machine.
    env: { PATH: '', HOME: folder, MCP_REMOTE_CONFIG_DIR: folder },
    stderr: 'pipe',
  })
  endAfter('test', async () => {
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })
  let said = ''
  let over = false
  transport.stderr?.on('data', (chunk) => {
    said += String(chunk)
  })
  const connected = client.connect(transport).finally(() => {
    over = true
  })
  connected.catch(() => {})
  const start = await until('it connects, or asks for a person', () => {
    if (over) return 'over'
    return authorizationUrl.exec(said)?.[0]
  })
  if (start !== 'over') {
    await fetch(await browse(new URL(start), `http://127.0.0.1:${port}/`))
  }
  try {
    await connected
  } catch (error) {
    throw new Error(`mcp-remote gave up: ${said}`, { cause: error })
  }
  return client
}
