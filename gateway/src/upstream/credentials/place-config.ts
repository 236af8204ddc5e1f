import { exactlyOne, type Infer, name, object, optional, string } from '../../schema/dsl.ts'

const header = object(
  {
    name: name({ doc: 'Name of the header.', example: 'x-api-key' }),
    prefix: optional(string({ doc: 'Prefix of the credential.', example: 'Bearer ' })),
  },
  { doc: 'Sends the credential in a header and replaces the header of the client.' },
)

/** `location` of credentials for a backend, restricted to headers. */
export const credentialLocation = object(
  { header },
  { doc: 'Location of the credential. The default is `authorization: Bearer`.' },
)

/** `location` of credentials for a backend. */
export const credentialPlace = exactlyOne(
  {
    header,
    queryParameter: object(
      { name: name({ doc: 'Name of the parameter.', example: 'api_key' }) },
      {
        doc: 'Sends the credential in a parameter of the query. Addresses are often logged: prefer a header.',
      },
    ),
    cookie: object(
      { name: name({ doc: 'Name of the cookie.', example: 'session' }) },
      { doc: 'Sends the credential in a cookie, beside those of the client.' },
    ),
  },
  {},
  { doc: 'Location of the credential. The default is `authorization: Bearer`.' },
)

export type CredentialPlaceConfig = Infer<typeof credentialPlace>
