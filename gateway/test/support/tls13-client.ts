import {
  createCipheriv,
  createDecipheriv,
  createECDH,
  createHash,
  createHmac,
  type ECDH,
  randomBytes,
} from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { endAfter } from './cleanup.ts'

/**
 * Handshake deviations that usual clients cannot produce: the second ClientHello may differ from the first.
 */
export type Tls13Options = {
  readonly port: number
  /** Server name of the first ClientHello; undefined sends no extension. */
  readonly first: string | undefined
  /** Server name of the second ClientHello, which follows a HelloRetryRequest. */
  readonly second: string | undefined
  readonly alpn?: readonly string[]
  /** Runs between the HelloRetryRequest and the second ClientHello. */
  readonly beforeSecond?: () => Promise<void>
}

export type Tls13Session =
  | {
      readonly kind: 'open'
      /** The server asked for a client certificate; an empty one was sent. */
      readonly asksForCertificate: boolean
      send(data: string | Buffer): void
      /** Bytes received until the connection ends. */
      closed(): Promise<string>
    }
  | { readonly kind: 'refused' }

const handshakeType = {
  clientHello: 1,
  serverHello: 2,
  certificate: 11,
  certificateRequest: 13,
  finished: 20,
}
const recordType = { changeCipherSpec: 20, alert: 21, handshake: 22, data: 23 }
/** RFC 8446 section 4.1.3: the random of a ServerHello that is a HelloRetryRequest. */
const retryRandom = createHash('sha256').update('HelloRetryRequest').digest()
const suite = 0x13_01
const group = 0x00_17

/**
 * A TLS 1.3 handshake (RFC 8446) of one cipher suite and one group, which trusts every server. The first
 * ClientHello has no key share, so that the server answers with a HelloRetryRequest.
 */
export async function connectTls13(options: Tls13Options): Promise<Tls13Session> {
  const { port, first, second, alpn = [], beforeSecond } = options
  const socket = connect(port, '127.0.0.1')
  endAfter('test', () => {
    socket.destroy()
  })
  const wire = createWire(socket)
  const key = createECDH('prime256v1')
  key.generateKeys()
  const random = randomBytes(32)
  const sessionId = randomBytes(32)
  const transcript: Buffer[] = []

  const hello1 = clientHello({ random, sessionId, name: first, alpn, share: undefined })
  socket.write(record(recordType.handshake, hello1))
  const retry = await wire.handshake()
  if (retry?.[0] !== handshakeType.serverHello) return { kind: 'refused' }
  if (!retry.subarray(6, 38).equals(retryRandom)) throw new Error('the server sent no HelloRetryRequest')
  // RFC 8446 section 4.4.1: a hash stands for the first ClientHello.
  transcript.push(message(254, sha256(hello1)), retry)

  await beforeSecond?.()
  const hello2 = clientHello({ random, sessionId, name: second, alpn, share: key.getPublicKey() })
  transcript.push(hello2)
  socket.write(record(recordType.handshake, hello2))
  const serverHello = await wire.handshake()
  if (serverHello?.[0] !== handshakeType.serverHello) return { kind: 'refused' }
  transcript.push(serverHello)

  const handshakeSecret = extract(
    derive(extract(zeros, zeros), 'derived', []),
    sharedSecret(key, serverHello),
  )
  const clientSecret = derive(handshakeSecret, 'c hs traffic', transcript)
  const serverSecret = derive(handshakeSecret, 's hs traffic', transcript)
  wire.decryptWith(serverSecret)

  let asksForCertificate = false
  for (;;) {
    const next = await wire.handshake()
    if (next === undefined) return { kind: 'refused' }
    transcript.push(next)
    asksForCertificate ||= next[0] === handshakeType.certificateRequest
    if (next[0] === handshakeType.finished) break
  }
  const master = extract(derive(handshakeSecret, 'derived', []), zeros)
  const applicationTranscript = [...transcript]
  const sealHandshake = sealer(clientSecret)
  if (asksForCertificate) {
    const empty = message(handshakeType.certificate, Buffer.from([0, 0, 0, 0]))
    transcript.push(empty)
    socket.write(sealHandshake(recordType.handshake, empty))
  }
  const finished = createHmac('sha256', expand(clientSecret, 'finished', Buffer.alloc(0), 32))
    .update(sha256(...transcript))
    .digest()
  socket.write(sealHandshake(recordType.handshake, message(handshakeType.finished, finished)))
  wire.decryptWith(derive(master, 's ap traffic', applicationTranscript))
  const seal = sealer(derive(master, 'c ap traffic', applicationTranscript))
  return {
    kind: 'open',
    asksForCertificate,
    send: (data) => {
      socket.write(seal(recordType.data, Buffer.from(data)))
    },
    closed: wire.data,
  }
}

type HelloParts = {
  random: Buffer
  sessionId: Buffer
  name: string | undefined
  alpn: readonly string[]
  share: Buffer | undefined
}

function clientHello({ random, sessionId, name, alpn, share }: HelloParts): Buffer {
  const extensions = [
    ...(name === undefined ? [] : [extension(0, vector(2, Buffer.from([0]), vector(2, Buffer.from(name))))]),
    extension(10, vector(2, uint16(group))),
    extension(13, vector(2, ...[0x04_03, 0x08_04, 0x08_07].map(uint16))),
    ...(alpn.length === 0
      ? []
      : [extension(16, vector(2, ...alpn.map((one) => vector(1, Buffer.from(one)))))]),
    extension(43, vector(1, uint16(0x03_04))),
    extension(51, vector(2, ...(share === undefined ? [] : [uint16(group), vector(2, share)]))),
  ]
  return message(
    handshakeType.clientHello,
    Buffer.concat([
      uint16(0x03_03),
      random,
      vector(1, sessionId),
      vector(2, uint16(suite)),
      vector(1, Buffer.from([0])),
      vector(2, ...extensions),
    ]),
  )
}

function sharedSecret(key: ECDH, serverHello: Buffer): Buffer {
  // The last 65 bytes of the key share are the point; the extension is found by its type and group.
  const mark = Buffer.concat([uint16(51), uint16(69), uint16(group), uint16(65)])
  const at = serverHello.indexOf(mark)
  if (at < 0) throw new Error('the server sent no key share')
  return key.computeSecret(serverHello.subarray(at + mark.length, at + mark.length + 65))
}

type Wire = {
  /** The next handshake message; undefined after an alert or the end. */
  handshake(): Promise<Buffer | undefined>
  decryptWith(secret: Buffer): void
  /** Application data until the end. */
  data(): Promise<string>
}

function createWire(socket: Socket): Wire {
  let received = Buffer.alloc(0)
  let pending = Buffer.alloc(0)
  let open: ((sealed: Buffer, header: Buffer) => Buffer) | undefined
  let wake = () => {}
  let ended = false
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    wake()
  })
  for (const event of ['error', 'close'])
    socket.on(event, () => {
      ended = true
      wake()
    })

  async function nextRecord(): Promise<{ type: number; body: Buffer } | undefined> {
    for (;;) {
      const length = received.length < 5 ? 0 : received.readUInt16BE(3)
      if (received.length >= 5 + length && length > 0) {
        const header = received.subarray(0, 5)
        const body = received.subarray(5, 5 + length)
        received = received.subarray(5 + length)
        const type = header[0] ?? 0
        if (type !== recordType.data || open === undefined) return { type, body }
        const inner = open(body, header)
        const end = inner.findLastIndex((byte) => byte !== 0)
        return { type: inner[end] ?? 0, body: inner.subarray(0, end) }
      }
      if (ended) return undefined
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  return {
    async handshake() {
      for (;;) {
        const length = pending.length < 4 ? 0 : 4 + pending.readUIntBE(1, 3)
        if (length > 0 && pending.length >= length) {
          const next = pending.subarray(0, length)
          pending = pending.subarray(length)
          return next
        }
        const next = await nextRecord()
        if (next === undefined || next.type === recordType.alert) return undefined
        if (next.type === recordType.handshake) pending = Buffer.concat([pending, next.body])
      }
    },
    decryptWith(secret) {
      open = opener(secret)
    },
    async data() {
      let text = ''
      for (;;) {
        const next = await nextRecord()
        if (next === undefined || next.type === recordType.alert) return text
        if (next.type === recordType.data) text += next.body.toString('latin1')
      }
    },
  }
}

const zeros = Buffer.alloc(32)

function extract(salt: Buffer, secret: Buffer): Buffer {
  return createHmac('sha256', salt).update(secret).digest()
}

/** RFC 8446 section 7.1: HKDF-Expand-Label. */
function expand(secret: Buffer, label: string, context: Buffer, length: number): Buffer {
  const info = Buffer.concat([uint16(length), vector(1, Buffer.from(`tls13 ${label}`)), vector(1, context)])
  const blocks = Math.ceil(length / 32)
  let output = Buffer.alloc(0)
  let block = Buffer.alloc(0)
  for (let index = 1; index <= blocks; index++) {
    block = createHmac('sha256', secret)
      .update(Buffer.concat([block, info, Buffer.from([index])]))
      .digest()
    output = Buffer.concat([output, block])
  }
  return output.subarray(0, length)
}

function derive(secret: Buffer, label: string, transcript: readonly Buffer[]): Buffer {
  return expand(secret, label, sha256(...transcript), 32)
}

/** RFC 8446 section 5.2 and 5.3. */
function sealer(secret: Buffer): (type: number, content: Buffer) => Buffer {
  const { key, nonce } = trafficKeys(secret)
  return (type, content) => {
    const header = Buffer.concat([Buffer.from([recordType.data, 3, 3]), uint16(content.length + 17)])
    const cipher = createCipheriv('aes-128-gcm', key, nonce())
    cipher.setAAD(header)
    const sealed = [cipher.update(content), cipher.update(Buffer.from([type])), cipher.final()]
    return Buffer.concat([header, ...sealed, cipher.getAuthTag()])
  }
}

function opener(secret: Buffer): (sealed: Buffer, header: Buffer) => Buffer {
  const { key, nonce } = trafficKeys(secret)
  return (sealed, header) => {
    const decipher = createDecipheriv('aes-128-gcm', key, nonce())
    decipher.setAAD(header)
    decipher.setAuthTag(sealed.subarray(-16))
    return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()])
  }
}

function trafficKeys(secret: Buffer): { key: Buffer; nonce(): Buffer } {
  const iv = expand(secret, 'iv', Buffer.alloc(0), 12)
  let sequence = 0
  return {
    key: expand(secret, 'key', Buffer.alloc(0), 16),
    nonce() {
      const nonce = Buffer.from(iv)
      nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sequence) >>> 0, 8)
      sequence += 1
      return nonce
    },
  }
}

function sha256(...parts: readonly Buffer[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

function record(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 1]), uint16(body.length), body])
}

function message(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, 0]), uint16(body.length), body])
}

function extension(type: number, body: Buffer): Buffer {
  return Buffer.concat([uint16(type), vector(2, body)])
}

function vector(lengthBytes: 1 | 2, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([lengthBytes === 1 ? Buffer.from([body.length]) : uint16(body.length), body])
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff])
}
