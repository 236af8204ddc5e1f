import { connect, createServer } from 'node:net'

/** The floor for TCP routes: two sockets, each piped into the other. */
const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
  const upstream = connect({
    host: '127.0.0.1',
    port: Number(process.argv[3]),
    allowHalfOpen: true,
    noDelay: true,
  })
  client.on('error', () => upstream.destroy())
  upstream.on('error', () => client.destroy())
  client.pipe(upstream)
  upstream.pipe(client)
})
server.listen(Number(process.argv[2]), '127.0.0.1', 4096, () => process.stdout.write('listening\n'))

process.on('SIGTERM', () => process.exit(0))
