import { useParams } from 'wouter'
import { ResourceEditor } from '../resources/resource-editor.tsx'

/** One TCP route. */
export default function TcpRoutePage() {
  const { id = '' } = useParams()
  const isNew = id === 'new'
  return (
    <ResourceEditor
      key={id}
      kind="traffic.tcpRoute"
      id={isNew ? undefined : id}
      noun="TCP route"
      path="/traffic/tcp-routes"
      about="Connections by gateway and server name, and the servers that they go to."
      initial={isNew ? { name: '', backends: [{ host: '' }] } : undefined}
    />
  )
}
