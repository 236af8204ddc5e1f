/**
 * Whether a name in lower case is valid for metadata of gRPC (Custom-Metadata of its protocol over HTTP/2).
 * Fields of the protocol and of the connection are reserved.
 */
export function isMetadataName(name: string): boolean {
  return validName.test(name) && !reservedName.test(name)
}

const validName = /^[0-9a-z_.-]+$/

const reservedName =
  /^(?:grpc-.*|content-type|content-length|te|user-agent|host|connection|transfer-encoding)$/
