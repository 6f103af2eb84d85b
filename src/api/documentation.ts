export const documentationPage = (): { path: string; respond(): Promise<Response> }[] => []
